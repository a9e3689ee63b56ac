//! Records of 16 bytes on their way from the threads that ask for memory to the one that writes them down.
//!
//! Producers take turns under a lock of theirs; there is one consumer. A record is an address or another number, and a
//! word whose top four bits are its kind.

use super::grown::Grown;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Records: 4 MiB.
pub(super) const ROOM: usize = 1 << 18;

/// After so many records the producers hear that there is room.
const SHARE: usize = 4096;

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
    /// Of the block that follows: its line in the first word (pages that were there already).
    pub(crate) const DETAIL: u64 = 8;
    /// A line's number in the first word (length of its file's name, which follows, 16 bytes a record).
    pub(crate) const SITE: u64 = 9;
}

/// The low bits of a record's second word.
pub(super) const VALUE: u64 = (1 << 60) - 1;

pub(super) type Record = [u64; 2];

/// A counter on cache lines of its own: the two sides look at each other's seldom.
#[repr(align(128))]
struct Counter(AtomicUsize);

impl Counter {
    const fn zero() -> Self {
        Self(AtomicUsize::new(0))
    }
}

/// See the module.
pub(super) struct Ring {
    records: AtomicPtr<Record>,
    /// Records ever put.
    head: Counter,
    /// Records ever taken.
    tail: Counter,
    /// What the producers last saw of `tail`.
    seen: Counter,
}

impl Ring {
    pub(super) const fn new() -> Self {
        Self {
            records: AtomicPtr::new(null_mut()),
            head: Counter::zero(),
            tail: Counter::zero(),
            seen: Counter::zero(),
        }
    }

    /// Maps the records for good, all of them made real, so that they don't count as growth of the program; false
    /// without memory.
    ///
    /// # Safety
    /// Nobody puts or takes.
    pub(super) unsafe fn open(&self) -> bool {
        if self.records.load(Relaxed).is_null() {
            let Some(fresh) = Grown::<Record>::zeros(ROOM) else { return false };
            let items = Grown::leak(fresh);
            items.fill([1, 1]);
            self.records.store(items.as_mut_ptr(), Release);
        }
        [&self.head, &self.tail, &self.seen].into_iter().for_each(|counter| counter.0.store(0, Relaxed));
        true
    }

    /// Records that wait.
    pub(super) fn used(&self) -> usize {
        self.head.0.load(Relaxed).wrapping_sub(self.tail.0.load(Acquire))
    }

    /// Records that wait, or more: it does not look at what the consumer writes.
    #[inline]
    pub(super) fn used_at_most(&self) -> usize {
        self.head.0.load(Relaxed).wrapping_sub(self.seen.0.load(Relaxed))
    }

    /// Puts records, all or none; where the head is now, or nothing where there is no room.
    ///
    /// # Safety
    /// The ring is open, and no other thread puts meanwhile.
    #[inline]
    pub(super) unsafe fn put(&self, records: &[Record]) -> Option<usize> {
        let head = self.head.0.load(Relaxed);
        if head.wrapping_sub(self.seen.0.load(Relaxed)) + records.len() > ROOM / 2 {
            let tail = self.tail.0.load(Acquire);
            self.seen.0.store(tail, Relaxed);
            if head.wrapping_sub(tail) + records.len() > ROOM {
                return None;
            }
        }
        let items = self.records.load(Relaxed);
        for (turn, record) in records.iter().enumerate() {
            // SAFETY: the place is below ROOM, mapped, and the consumer does not look at it before `head` passes.
            unsafe { items.add(head.wrapping_add(turn) & (ROOM - 1)).write(*record) };
        }
        let head = head.wrapping_add(records.len());
        self.head.0.store(head, Release);
        Some(head)
    }

    /// Hands what waits now to `each`; what comes meanwhile waits for the next time, since a consumer on the heels of a
    /// producer would take its cache lines away.
    ///
    /// # Safety
    /// The ring is open, and no other thread takes meanwhile.
    pub(super) unsafe fn take(&self, mut each: impl FnMut(Record)) {
        let (mut tail, head) = (self.tail.0.load(Relaxed), self.head.0.load(Acquire));
        let items = self.records.load(Relaxed);
        while tail != head {
            // SAFETY: it was written before `head` passed it, and will not be written again before `tail` does.
            each(unsafe { items.add(tail & (ROOM - 1)).read() });
            tail = tail.wrapping_add(1);
            if tail % SHARE == 0 {
                self.tail.0.store(tail, Release);
            }
        }
        self.tail.0.store(tail, Release);
    }
}
