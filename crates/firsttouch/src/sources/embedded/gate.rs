//! The gate around every call into an embedded allocator: it counts the bytes in use, and a fork waits until no thread
//! is inside. There is one lock for each processor, so threads seldom contend.

use crate::os;
use crate::sync::lock::{Guard, Lock};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// Bytes by which a processor's count may differ from what it last reported.
const STEP: isize = 64 << 10;

/// The counts of one processor.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    /// Bytes allocated minus bytes freed since the last report.
    untold: isize,
    pub allocations: u64,
    pub allocated_bytes: u64,
    /// Usable bytes that were freed.
    pub freed_bytes: u64,
}

#[repr(align(128))] // two cache lines, which the prefetcher loads together
struct Padded(Lock<Counts>);

pub(super) struct Gate {
    shards: Box<[Padded]>,
    /// Bytes in use.
    active: AtomicIsize,
    /// The peak since [`Gate::next_peak`] was last called.
    peak: AtomicIsize,
}

impl Gate {
    pub(super) fn new() -> Self {
        let shards = (0..os::processors().min(64)).map(|_| Padded(Lock::new(Counts::default()))).collect();
        Self { shards, active: AtomicIsize::new(0), peak: AtomicIsize::new(0) }
    }

    /// Enters the gate; the thread is inside until it drops the guard.
    pub(super) fn enter(&self) -> Guard<'_, Counts> {
        self.shards[os::current_processor() % self.shards.len()].0.lock()
    }

    /// Adds `change` to the bytes in use.
    pub(super) fn note(&self, counts: &mut Counts, change: isize) {
        counts.untold += change;
        counts.freed_bytes += change.min(0).unsigned_abs() as u64;
        if counts.untold.abs() >= STEP {
            self.tell(counts);
        }
    }

    fn tell(&self, counts: &mut Counts) {
        let change = std::mem::take(&mut counts.untold);
        let now = self.active.fetch_add(change, Relaxed) + change;
        if change > 0 {
            self.peak.fetch_max(now, Relaxed);
        }
    }

    /// Bytes in use, and the sum of all processors' counts.
    pub(super) fn sum(&self) -> (usize, Counts) {
        let mut sum = Counts::default();
        for Padded(shard) in &self.shards {
            let mut counts = shard.lock();
            self.tell(&mut counts);
            sum.allocations += counts.allocations;
            sum.allocated_bytes += counts.allocated_bytes;
            sum.freed_bytes += counts.freed_bytes;
        }
        (self.active.load(Relaxed).max(0) as usize, sum)
    }

    /// The peak of the bytes in use since the last call.
    pub(super) fn next_peak(&self) -> usize {
        let active = self.active.load(Relaxed);
        self.peak.swap(active, Relaxed).max(active).max(0) as usize
    }

    /// Waits until no thread is inside, and keeps others from entering.
    pub(super) fn hold(&self) {
        self.shards.iter().for_each(|shard| shard.0.hold());
    }

    /// Ends [`Gate::hold`].
    ///
    /// # Safety
    /// The gate is held by `hold`.
    pub(super) unsafe fn release(&self) {
        // SAFETY: `hold` acquired it, as the fork handlers (`purger`) do before they call this.
        self.shards.iter().for_each(|shard| unsafe { shard.0.release() });
    }
}
