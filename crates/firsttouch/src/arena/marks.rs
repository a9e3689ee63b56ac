//! Marks, and which of them are still valid.
//!
//! A mark holds its index and its epoch. A rewind that skips later marks begins another epoch and records which marks it
//! invalidated; as long as marks are rewound to in order, they take no memory.

use super::bump::Position;
use super::error::MarkError;
use super::inline_vec::InlineVec;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A position that an arena can be rewound to, once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a mark does nothing until the arena is rewound to it"]
pub struct Mark {
    arena: u64,
    epoch: u64,
    index: usize,
    at: Position,
}

/// The marks of one arena.
pub(super) struct Marks {
    /// The first epoch, which identifies the arena; 0 before the first mark.
    arena: Cell<u64>,
    epoch: Cell<u64>,
    /// Number of valid marks.
    count: Cell<usize>,
    /// Pairs of an index and an epoch, both increasing: marks from that index on, up to that epoch, are invalid.
    invalidated: RefCell<InlineVec<(usize, u64), 2>>,
}

/// Returns an epoch that no arena has had.
fn fresh_epoch() -> u64 {
    static EPOCHS: AtomicU64 = AtomicU64::new(1);
    EPOCHS.fetch_add(1, Relaxed)
}

impl Marks {
    pub(super) const fn new() -> Self {
        let (arena, epoch, count) = (Cell::new(0), Cell::new(0), Cell::new(0));
        Self { arena, epoch, count, invalidated: RefCell::new(InlineVec::new()) }
    }

    /// Makes a mark for a position.
    #[inline]
    pub(super) fn add(&self, at: Position) -> Mark {
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

    /// Returns the position of a mark, and invalidates it and all later marks.
    #[inline]
    pub(super) fn take(&self, mark: &Mark) -> Result<Position, MarkError> {
        if mark.epoch != self.epoch.get() || mark.index + 1 != self.count.get() {
            self.skip_to(mark.arena, mark.epoch, mark.index)?; // by field, so that they stay in registers
        }
        self.count.set(mark.index);
        Ok(mark.at)
    }

    /// Checks a mark that is not the latest, and invalidates the later ones.
    #[cold]
    fn skip_to(&self, arena: u64, epoch: u64, index: usize) -> Result<(), MarkError> {
        if arena != self.arena.get() {
            return Err(MarkError::OtherArena);
        }
        let invalid = |&(from, last): &(usize, u64)| from <= index && epoch <= last;
        if index >= self.count.get() || self.invalidated.borrow().iter().any(invalid) {
            return Err(MarkError::WrongOrder);
        }
        if index + 1 < self.count.get() {
            self.invalidate(index);
        }
        Ok(())
    }

    /// Invalidates the marks from `index` on.
    #[cold]
    fn invalidate(&self, index: usize) {
        let invalidated = &mut *self.invalidated.borrow_mut();
        invalidated.retain(|&(other, _)| other < index);
        let last = invalidated.len();
        if invalidated.reserve(0).is_ok() {
            invalidated.insert(last, (index, self.epoch.get()));
        } else {
            // Out of memory: invalidates all marks. What they would free is freed by the next reset.
            invalidated.retain(|_| false);
            invalidated.insert(0, (0, self.epoch.get()));
        }
        self.epoch.set(fresh_epoch());
    }

    /// Invalidates all marks.
    #[inline]
    pub(super) fn clear(&self) {
        if self.count.replace(0) > 0 {
            self.invalidate(0);
        }
    }

    /// Returns whether there are no valid marks.
    pub(super) fn is_empty(&self) -> bool {
        self.count.get() == 0
    }
}
