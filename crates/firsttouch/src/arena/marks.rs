//! Marks, and which of them still mean something.
//!
//! A mark knows how many came before it and its epoch. Epochs change when a rewind passes marks over; that is noted, so
//! that those which were passed over are known. Without that a mark costs nothing but its own bytes.

use super::bump::Position;
use super::list::List;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A position that an arena can go back to, once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a mark does nothing until the arena is rewound to it"]
pub struct Mark {
    arena: u64,
    epoch: u64,
    index: usize,
    at: Position,
}

/// Why an arena can't go back to a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkError {
    /// Another arena made it.
    OtherArena,
    /// The arena was reset, or rewound to an earlier mark, since this one was made.
    WrongOrder,
}

impl fmt::Display for MarkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherArena => "the mark belongs to another arena: rewind the arena that made it",
            Self::WrongOrder => {
                "the arena was reset, or rewound to an earlier mark, since this mark was made: rewind to the latest mark \
                 first"
            }
        })
    }
}

impl std::error::Error for MarkError {}

/// The marks of one arena.
pub(super) struct Marks {
    /// The first epoch, which no other arena has; zero before the first mark.
    arena: Cell<u64>,
    epoch: Cell<u64>,
    /// How many there are.
    count: Cell<usize>,
    /// From which index on marks up to which epoch mean nothing; both rise.
    passed: RefCell<List<(usize, u64), 2>>,
}

/// A number that was never given before.
fn fresh_epoch() -> u64 {
    static EPOCHS: AtomicU64 = AtomicU64::new(1);
    EPOCHS.fetch_add(1, Relaxed)
}

impl Marks {
    pub(super) const fn new() -> Self {
        let (arena, epoch, count) = (Cell::new(0), Cell::new(0), Cell::new(0));
        Self { arena, epoch, count, passed: RefCell::new(List::new()) }
    }

    /// A mark for `at`.
    #[inline]
    pub(super) fn put(&self, at: Position) -> Mark {
        if self.epoch.get() == 0 {
            self.begin();
        }
        let index = self.count.get();
        self.count.set(index + 1);
        Mark { arena: self.arena.get(), epoch: self.epoch.get(), index, at }
    }

    #[cold]
    fn begin(&self) {
        self.arena.set(fresh_epoch());
        self.epoch.set(self.arena.get());
    }

    /// The position of a mark. It means nothing from now on, and neither do those that were made later.
    #[inline]
    pub(super) fn take(&self, mark: &Mark) -> Result<Position, MarkError> {
        if mark.epoch != self.epoch.get() || mark.index + 1 != self.count.get() {
            self.pass(mark.arena, mark.epoch, mark.index)?; // in pieces, which may stay in registers
        }
        self.count.set(mark.index);
        Ok(mark.at)
    }

    /// Notes that a mark is not the latest, if it still means something.
    #[cold]
    fn pass(&self, arena: u64, epoch: u64, index: usize) -> Result<(), MarkError> {
        if arena != self.arena.get() {
            return Err(MarkError::OtherArena);
        }
        let gone = |&(from, last): &(usize, u64)| from <= index && epoch <= last;
        if index >= self.count.get() || self.passed.borrow().iter().any(gone) {
            return Err(MarkError::WrongOrder);
        }
        if index + 1 < self.count.get() {
            self.forget(index);
        }
        Ok(())
    }

    /// Marks from `index` on mean nothing any more.
    #[cold]
    fn forget(&self, index: usize) {
        let passed = &mut *self.passed.borrow_mut();
        passed.retain(|&(other, _)| other < index);
        let last = passed.len();
        if passed.reserve(0).is_ok() {
            passed.insert(last, (index, self.epoch.get()));
        } else {
            // No memory to tell which: none means anything, and what they would free stays until the next reset.
            passed.retain(|_| false);
            passed.insert(0, (0, self.epoch.get()));
        }
        self.epoch.set(fresh_epoch());
    }

    /// Forgets all.
    #[inline]
    pub(super) fn clear(&self) {
        if self.count.replace(0) > 0 {
            self.forget(0);
        }
    }

    /// Whether there is nowhere to go back to.
    pub(super) fn is_empty(&self) -> bool {
        self.count.get() == 0
    }
}
