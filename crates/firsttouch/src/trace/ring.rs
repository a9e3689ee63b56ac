//! Records of 16 bytes on their way from the threads that ask for memory to the one that writes them down.
//!
//! Producers take turns under a lock of theirs; there is one consumer. A record is an address or another number, and a
//! word whose top four bits are its kind.

use super::grown::Grown;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Records: 4 MiB.
pub(super) const ROOM: usize = 1 << 18;

/// What a record says; its second word's low 60 bits are in brackets.
pub(super) mod kind {
    /// A block was given (bytes).
    pub(crate) const ALLOCATE: u64 = 1;
    /// One that reads zero (bytes).
    pub(crate) const ZEROED: u64 = 2;
    /// It is given back (pages that are there, plus one; zero where nobody looked).
    pub(crate) const FREE: u64 = 3;
    /// It is about to move.
    pub(crate) const MOVE: u64 = 4;
    /// It has moved here; nowhere, if that failed (bytes).
    pub(crate) const MOVED: u64 = 5;
    /// All that follows is of this thread.
    pub(crate) const THREAD: u64 = 6;
    /// All that follows is at this time or later (microseconds).
    pub(crate) const TIME: u64 = 7;
    /// Of the block that follows: its line in the first word (pages that are there already).
    pub(crate) const DETAIL: u64 = 8;
    /// A line's number in the first word (length of its file's name, which follows, 16 bytes a record).
    pub(crate) const SITE: u64 = 9;
}

/// The low bits of a record's second word.
pub(super) const VALUE: u64 = (1 << 60) - 1;

pub(super) type Record = [u64; 2];

/// See the module.
pub(super) struct Ring {
    records: UnsafeCell<Grown<Record>>,
    /// Records ever put.
    head: AtomicUsize,
    /// Records ever taken.
    tail: AtomicUsize,
}

// SAFETY: a record is written before `head` passes it and read before `tail` does; the list itself changes only while
// nothing is recorded.
unsafe impl Sync for Ring {}

impl Ring {
    pub(super) const fn new() -> Self {
        Self { records: UnsafeCell::new(Grown::new()), head: AtomicUsize::new(0), tail: AtomicUsize::new(0) }
    }

    /// Maps the records, all of them made real, so that they don't count as growth of the program; false without memory.
    ///
    /// # Safety
    /// Nobody puts or takes.
    pub(super) unsafe fn open(&self) -> bool {
        // SAFETY: the caller's promise.
        let records = unsafe { &mut *self.records.get() };
        if records.items().is_empty() {
            let Some(mut fresh) = Grown::zeros(ROOM) else { return false };
            fresh.items().fill([1, 1]);
            *records = fresh;
        }
        self.head.store(0, Relaxed);
        self.tail.store(0, Relaxed);
        true
    }

    pub(super) fn used(&self) -> usize {
        self.head.load(Relaxed).wrapping_sub(self.tail.load(Acquire))
    }

    /// Puts records, all or none; where the head is now, or nothing where there is no room.
    ///
    /// # Safety
    /// The ring is open, and no other thread puts meanwhile.
    #[inline]
    pub(super) unsafe fn put(&self, records: &[Record]) -> Option<usize> {
        let head = self.head.load(Relaxed);
        if head.wrapping_sub(self.tail.load(Acquire)) + records.len() > ROOM {
            return None;
        }
        // SAFETY: these places are mapped, and the consumer does not look at them before `head` passes.
        let items = unsafe { (*self.records.get()).items().as_mut_ptr() };
        for (turn, record) in records.iter().enumerate() {
            // SAFETY: as above; the place is below ROOM.
            unsafe { items.add(head.wrapping_add(turn) & (ROOM - 1)).write(*record) };
        }
        let head = head.wrapping_add(records.len());
        self.head.store(head, Release);
        Some(head)
    }

    /// The next record, if there is one.
    ///
    /// # Safety
    /// The ring is open, and no other thread takes meanwhile.
    #[inline]
    pub(super) unsafe fn take(&self) -> Option<Record> {
        let tail = self.tail.load(Relaxed);
        if tail == self.head.load(Acquire) {
            return None;
        }
        // SAFETY: it was written before `head` passed it, and will not be written again before `tail` does.
        let record = unsafe { (*self.records.get()).items().as_ptr().add(tail & (ROOM - 1)).read() };
        self.tail.store(tail.wrapping_add(1), Release);
        Some(record)
    }
}
