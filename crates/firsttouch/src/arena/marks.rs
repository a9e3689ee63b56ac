//! Marks, and which of them still mean something.

use super::bump::Position;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A position that an arena can go back to, once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a mark does nothing until the arena is rewound to it"]
pub struct Mark {
    pub(super) arena: u64,
    pub(super) serial: u64,
}

/// Why an arena can't go back to a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkError {
    /// Another arena made it.
    OtherArena,
    /// The arena was reset, or rewound to an earlier mark, since this one was made.
    WrongOrder,
    /// There was no memory to remember it.
    Forgotten,
}

impl fmt::Display for MarkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherArena => "the mark belongs to another arena: rewind the arena that made it",
            Self::WrongOrder => {
                "the arena was rewound to an earlier mark, or reset, since this mark was made: rewind to the latest \
                 mark first"
            }
            Self::Forgotten => "there was no memory to remember the mark: rewind to an earlier one, or reset",
        })
    }
}

impl std::error::Error for MarkError {}

/// The number of a mark that is not in the list.
const FORGOTTEN: u64 = 0;

/// The marks that an arena can go back to, the latest last. Their numbers only rise, so a mark that is gone is known
/// even if a later one stands at the same place.
pub(super) struct Marks {
    arena: u64,
    last: u64,
    list: Vec<(u64, Position)>,
}

impl Marks {
    pub(super) const fn new() -> Self {
        Self { arena: 0, last: FORGOTTEN, list: Vec::new() }
    }

    /// A mark for `at`.
    #[inline]
    pub(super) fn put(&mut self, at: Position) -> Mark {
        if self.list.len() == self.list.capacity() && !self.grow() {
            return Mark { arena: self.arena, serial: FORGOTTEN };
        }
        self.last += 1;
        self.list.push((self.last, at));
        Mark { arena: self.arena, serial: self.last }
    }

    /// Room for more marks, and at first a number for the arena, which is zero before; whether there is any.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> bool {
        static ARENAS: AtomicU64 = AtomicU64::new(1);
        if self.arena == 0 {
            self.arena = ARENAS.fetch_add(1, Relaxed);
        }
        self.list.try_reserve(4).is_ok()
    }

    /// The position of a mark, which is forgotten, and all later ones with it.
    #[inline]
    pub(super) fn take(&mut self, mark: &Mark) -> Result<Position, MarkError> {
        if mark.arena != self.arena {
            return Err(MarkError::OtherArena);
        }
        self.take_serial(mark.serial)
    }

    /// The same for a mark that is known to be this arena's.
    #[inline]
    pub(super) fn take_serial(&mut self, serial: u64) -> Result<Position, MarkError> {
        match self.list.last() {
            Some(&(last, at)) if last == serial => {
                self.list.pop();
                Ok(at)
            }
            _ => self.search(serial),
        }
    }

    #[cold]
    fn search(&mut self, serial: u64) -> Result<Position, MarkError> {
        if serial == FORGOTTEN {
            return Err(MarkError::Forgotten);
        }
        let index = self.list.binary_search_by_key(&serial, |&(serial, _)| serial);
        let index = index.map_err(|_| MarkError::WrongOrder)?;
        let at = self.list[index].1;
        self.list.truncate(index);
        Ok(at)
    }

    /// Whether there is nowhere to go back to.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Forgets all marks.
    pub(super) fn clear(&mut self) {
        self.list.clear();
    }
}
