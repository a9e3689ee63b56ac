//! A ring buffer of 16-byte records from the allocating threads to the writer.
//!
//! Producers take turns under a lock of their own; there is one consumer. A record is a number, usually an address, and a
//! word with the record's [kind](record) in its top four bits and a value in the other 60.

use super::mapped_vec::MappedVec;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Capacity in records: 4 MiB.
pub(super) const CAPACITY: usize = 1 << 18;

/// The consumer publishes its progress every this many records.
const PUBLISH_INTERVAL: usize = 4096;

pub(super) type Record = [u64; 2];

/// The kinds of records, and how they are packed.
pub(super) mod record {
    use super::Record;

    /// A block was allocated (size).
    pub(crate) const ALLOCATE: u64 = 1;
    /// A zeroed block was allocated (size).
    pub(crate) const ALLOCATE_ZEROED: u64 = 2;
    /// A block is freed (resident pages plus one, or zero if they were not queried).
    pub(crate) const FREE: u64 = 3;
    /// A block is about to be resized.
    pub(crate) const RESIZE_BEGIN: u64 = 4;
    /// It was resized, and is now at this address; zero if that failed (size).
    pub(crate) const RESIZE_END: u64 = 5;
    /// All following records are from this thread.
    pub(crate) const THREAD: u64 = 6;
    /// All following records are from this time or later (microseconds).
    pub(crate) const TIME: u64 = 7;
    /// Precedes the allocation of a large block: the site in place of the address (resident pages).
    pub(crate) const DETAIL: u64 = 8;
    /// A source line: its number in place of the address (length of its file name, which follows, 16 bytes a record).
    pub(crate) const SITE: u64 = 9;

    /// File names are truncated to this many bytes.
    pub(crate) const MAX_NAME_LEN: usize = 1024;

    const VALUE_BITS: u32 = 60;
    const VALUE_MASK: u64 = (1 << VALUE_BITS) - 1;

    /// Packs a record.
    #[inline]
    pub(crate) fn pack(address: u64, kind: u64, value: u64) -> Record {
        [address, kind << VALUE_BITS | value & VALUE_MASK]
    }

    /// Returns the address, the kind and the value of a record.
    #[inline]
    pub(crate) fn unpack([address, word]: Record) -> (usize, u64, u64) {
        (address as usize, word >> VALUE_BITS, word & VALUE_MASK)
    }

    /// Packs a file name, 16 bytes a record.
    pub(crate) fn pack_name(name: &[u8]) -> impl Iterator<Item = Record> {
        name.chunks(16).map(|chunk| {
            let mut bytes = [0; 16];
            bytes[..chunk.len()].copy_from_slice(chunk);
            let word = |half: &[u8]| u64::from_ne_bytes(half.try_into().unwrap_or_default());
            [word(&bytes[..8]), word(&bytes[8..])]
        })
    }

    /// Returns the bytes of one record of a file name.
    pub(crate) fn unpack_name([low, high]: Record) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&low.to_ne_bytes());
        bytes[8..].copy_from_slice(&high.to_ne_bytes());
        bytes
    }
}

/// A counter on a cache line pair of its own, so that producers and consumer do not share lines.
#[repr(align(128))]
struct Counter(AtomicUsize);

impl Counter {
    const fn zero() -> Self {
        Self(AtomicUsize::new(0))
    }
}

/// The ring buffer. It is usable once [`open`](Self::open) returned `true`.
pub(super) struct Ring {
    records: AtomicPtr<Record>,
    /// Number of records ever pushed.
    head: Counter,
    /// Number of records ever consumed.
    tail: Counter,
    /// A copy of `tail` that the producers refresh when they need to.
    cached_tail: Counter,
}

impl Ring {
    pub(super) const fn new() -> Self {
        Self {
            records: AtomicPtr::new(null_mut()),
            head: Counter::zero(),
            tail: Counter::zero(),
            cached_tail: Counter::zero(),
        }
    }

    /// Empties the ring. The first call maps the records for good, and faults them in so that they do not show as growth
    /// of the program. Returns `false` if out of memory.
    ///
    /// # Safety
    /// No other thread pushes or consumes.
    pub(super) unsafe fn open(&self) -> bool {
        if self.records.load(Relaxed).is_null() {
            let Some(fresh) = MappedVec::<Record>::zeroed(CAPACITY) else { return false };
            let items = MappedVec::leak(fresh);
            items.fill([1, 1]);
            self.records.store(items.as_mut_ptr(), Release);
        }
        [&self.head, &self.tail, &self.cached_tail].into_iter().for_each(|counter| counter.0.store(0, Relaxed));
        true
    }

    /// Returns the number of unconsumed records.
    pub(super) fn len(&self) -> usize {
        self.head.0.load(Relaxed).wrapping_sub(self.tail.0.load(Acquire))
    }

    /// Returns an upper bound of [`len`](Self::len) without touching the consumer's cache line.
    #[inline]
    pub(super) fn max_len(&self) -> usize {
        self.head.0.load(Relaxed).wrapping_sub(self.cached_tail.0.load(Relaxed))
    }

    /// Pushes all of the records, or none. Returns the number of records ever pushed, or `None` if the ring is full.
    ///
    /// # Safety
    /// The ring is open, and no other thread pushes concurrently.
    #[inline]
    pub(super) unsafe fn push(&self, records: &[Record]) -> Option<usize> {
        let head = self.head.0.load(Relaxed);
        if head.wrapping_sub(self.cached_tail.0.load(Relaxed)) + records.len() > CAPACITY / 2 {
            let tail = self.tail.0.load(Acquire);
            self.cached_tail.0.store(tail, Relaxed);
            if head.wrapping_sub(tail) + records.len() > CAPACITY {
                return None;
            }
        }
        let items = self.records.load(Relaxed);
        for (offset, record) in records.iter().enumerate() {
            // SAFETY: the index is below CAPACITY, mapped, and not read by the consumer before `head` passes it.
            unsafe { items.add(head.wrapping_add(offset) & (CAPACITY - 1)).write(*record) };
        }
        let head = head.wrapping_add(records.len());
        self.head.0.store(head, Release);
        Some(head)
    }

    /// Calls `each` with the records pushed so far. Records pushed meanwhile are left for the next call: a consumer on
    /// the heels of the producers would keep taking their cache lines.
    ///
    /// # Safety
    /// The ring is open, and no other thread consumes concurrently.
    pub(super) unsafe fn drain(&self, mut each: impl FnMut(Record)) {
        let (mut tail, head) = (self.tail.0.load(Relaxed), self.head.0.load(Acquire));
        let items = self.records.load(Relaxed);
        while tail != head {
            // SAFETY: it was written before `head` passed it, and is not overwritten before `tail` does.
            each(unsafe { items.add(tail & (CAPACITY - 1)).read() });
            tail = tail.wrapping_add(1);
            if tail % PUBLISH_INTERVAL == 0 {
                self.tail.0.store(tail, Release);
            }
        }
        self.tail.0.store(tail, Release);
    }
}
