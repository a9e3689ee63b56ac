//! Bytes in use, and their peak. Each shard reports when its changes add up to 1 MiB, so that processors do not
//! contend for one counter; peaks are accurate to that.

use super::shard::Counts;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering::Relaxed};

const STEP: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Meter {
    pub in_use: AtomicIsize,
    pub active: AtomicIsize,
    pub peak_in_use: AtomicIsize,
    pub peak_active: AtomicIsize,
    pub peak_held: AtomicIsize,
    pub first_touched_small: AtomicU64,
    pub first_touched_huge: AtomicU64,
    pub purged: AtomicU64,
    pub failures: AtomicU64,
}

impl Meter {
    /// Records that a block of `asked` bytes in a span of `bytes` was allocated or (if negative) freed.
    #[inline]
    pub(super) fn note(&self, counts: &mut Counts, asked: isize, bytes: isize) {
        counts.in_use += asked;
        counts.active += bytes;
        if counts.active.unsigned_abs() >= STEP || counts.in_use.unsigned_abs() >= STEP {
            self.report(counts);
        }
    }

    /// Bytes of spans that hold blocks.
    pub(super) fn active(&self) -> usize {
        self.active.load(Relaxed).max(0) as usize
    }

    /// The same at their peak.
    pub(super) fn most_active(&self) -> usize {
        self.active().max(self.peak_active.load(Relaxed).max(0) as usize)
    }

    pub(super) fn report(&self, counts: &mut Counts) {
        add(&self.in_use, &self.peak_in_use, counts.in_use);
        add(&self.active, &self.peak_active, counts.active);
        counts.in_use = 0;
        counts.active = 0;
    }
}

fn add(now: &AtomicIsize, peak: &AtomicIsize, change: isize) {
    let sum = now.fetch_add(change, Relaxed) + change;
    if change > 0 {
        peak.fetch_max(sum, Relaxed);
    }
}
