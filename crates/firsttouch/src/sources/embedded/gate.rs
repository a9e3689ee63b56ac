//! The gate that every call into another's allocator passes: what is out is counted there, and a fork waits until
//! nobody is behind it. One lock for each processor, so threads seldom meet.

use crate::os;
use crate::sync::lock::{Guard, Lock};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// Bytes that a processor may have counted before it tells.
const STEP: isize = 64 << 10;

/// What one processor counted.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    /// Bytes given minus bytes taken back, since this was told last.
    untold: isize,
    pub allocations: u64,
    pub allocated_bytes: u64,
}

#[repr(align(128))] // two cache lines: neighbours are fetched together
struct Padded(Lock<Counts>);

pub(super) struct Gate {
    shards: Box<[Padded]>,
    /// Bytes that are out.
    active: AtomicIsize,
    /// The most of it since [`Gate::next_peak`].
    peak: AtomicIsize,
}

impl Gate {
    pub(super) fn new() -> Self {
        let shards = (0..os::processors().min(64)).map(|_| Padded(Lock::new(Counts::default()))).collect();
        Self { shards, active: AtomicIsize::new(0), peak: AtomicIsize::new(0) }
    }

    /// Passes; whoever holds the guard is behind the gate.
    pub(super) fn enter(&self) -> Guard<'_, Counts> {
        self.shards[os::current_processor() % self.shards.len()].0.lock()
    }

    /// Counts that `change` bytes more are out.
    pub(super) fn note(&self, counts: &mut Counts, change: isize) {
        counts.untold += change;
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

    /// Bytes that are out, and what all processors counted.
    pub(super) fn sum(&self) -> (usize, Counts) {
        let mut sum = Counts::default();
        for Padded(shard) in &self.shards {
            let mut counts = shard.lock();
            self.tell(&mut counts);
            sum.allocations += counts.allocations;
            sum.allocated_bytes += counts.allocated_bytes;
        }
        (self.active.load(Relaxed).max(0) as usize, sum)
    }

    /// The most that was out at once since the last call.
    pub(super) fn next_peak(&self) -> usize {
        let active = self.active.load(Relaxed);
        self.peak.swap(active, Relaxed).max(active).max(0) as usize
    }

    /// Waits until nobody is behind the gate, and lets nobody pass.
    pub(super) fn hold(&self) {
        self.shards.iter().for_each(|shard| shard.0.hold());
    }

    /// Ends [`Gate::hold`].
    ///
    /// # Safety
    /// The gate is held by `hold`.
    pub(super) unsafe fn release(&self) {
        // SAFETY: the caller's promise.
        self.shards.iter().for_each(|shard| unsafe { shard.0.release() });
    }
}
