//! A pool's counts: those of each processor in its shard, and the sums.

use super::Pool;
use crate::policy::METER_STEP;
use crate::stats::Stats;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering::Relaxed};

/// The counts of one processor, in bytes or numbers; the pool's counts are the sums over the shards.
#[derive(Clone, Copy, Default)]
pub(super) struct PoolCounts {
    pub allocations: u64,
    pub recycled: u64,
    pub allocated_bytes: u64,
    pub recycled_bytes: u64,
    pub blocks: isize,
    /// Changes of the bytes in use and active that were not reported to the meter yet.
    pub in_use: isize,
    pub active: isize,
    /// The highest that these were since.
    most_in_use: isize,
    most_active: isize,
}

impl PoolCounts {
    /// Counts a request that was served with `bytes`, of which `recycled` were used before.
    #[inline]
    pub(super) fn served(&mut self, asked: usize, bytes: usize, recycled: usize) {
        self.allocations += 1;
        self.allocated_bytes += asked as u64;
        self.recycled += u64::from(recycled == bytes);
        self.recycled_bytes += recycled as u64;
    }
}

/// Bytes in use, and their peak. Each shard reports when its changes add up to [`METER_STEP`], so that processors do not contend
/// for one counter; peaks are exact where one processor makes them, and accurate to that for each further one.
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
    /// Bytes taken fresh in place of idle ones that did not suit the request: those that the kernel clears faster, those on
    /// base pages where huge ones are better, and those that gave way to the pages of a block that moved.
    pub renewed: AtomicU64,
    pub failures: AtomicU64,
}

impl Meter {
    /// Records that a block of `asked` bytes in a span of `bytes` was allocated or (if negative) freed.
    #[inline]
    pub(super) fn add(&self, counts: &mut PoolCounts, asked: isize, bytes: isize) {
        counts.in_use += asked;
        counts.active += bytes;
        counts.most_in_use = counts.most_in_use.max(counts.in_use);
        counts.most_active = counts.most_active.max(counts.active);
        if counts.active.unsigned_abs() >= METER_STEP || counts.in_use.unsigned_abs() >= METER_STEP {
            self.report(counts);
        }
    }

    /// Counts bytes that were taken fresh from the system, on base pages and on huge ones.
    pub(super) fn touched(&self, small: usize, huge: usize) {
        self.first_touched_small.fetch_add(small as u64, Relaxed);
        self.first_touched_huge.fetch_add(huge as u64, Relaxed);
    }

    /// Counts bytes that go back to the system because the request that finds them is better served by fresh ones.
    pub(super) fn purged_for_fresh(&self, bytes: usize) {
        self.purged.fetch_add(bytes as u64, Relaxed);
        self.renewed.fetch_add(bytes as u64, Relaxed);
    }

    /// Counts that `held` bytes are held.
    pub(super) fn hold(&self, held: usize) {
        self.peak_held.fetch_max(held as isize, Relaxed);
    }

    /// The most bytes that were ever held.
    pub(super) fn most_held(&self) -> usize {
        self.peak_held.load(Relaxed).max(0) as usize
    }

    /// The statistics of all shards with these counts, without what is idle and mapped.
    pub(super) fn stats<'a>(&self, shards: impl Iterator<Item = &'a mut PoolCounts>) -> Stats {
        let (mut stats, mut blocks) = (Stats::default(), 0);
        for counts in shards {
            self.report(counts);
            blocks += counts.blocks;
            stats.allocations += counts.allocations;
            stats.recycled += counts.recycled;
            stats.allocated_bytes += counts.allocated_bytes;
            stats.recycled_bytes += counts.recycled_bytes;
        }
        let whole = |n: &AtomicIsize| n.load(Relaxed).max(0) as usize;
        Stats {
            in_use: whole(&self.in_use),
            active: whole(&self.active),
            peak_in_use: whole(&self.peak_in_use),
            peak_active: whole(&self.peak_active),
            blocks: blocks.max(0) as usize,
            first_touched_small_bytes: self.first_touched_small.load(Relaxed),
            first_touched_huge_bytes: self.first_touched_huge.load(Relaxed),
            purged_bytes: self.purged.load(Relaxed),
            failures: self.failures.load(Relaxed),
            ..stats
        }
    }

    /// Bytes of spans that hold blocks.
    pub(super) fn active(&self) -> usize {
        self.active.load(Relaxed).max(0) as usize
    }

    /// The most bytes of spans that ever held blocks.
    pub(super) fn most_active(&self) -> usize {
        self.active().max(self.peak_active.load(Relaxed).max(0) as usize)
    }

    pub(super) fn report(&self, counts: &mut PoolCounts) {
        add(&self.in_use, &self.peak_in_use, counts.in_use, counts.most_in_use);
        add(&self.active, &self.peak_active, counts.active, counts.most_active);
        (counts.in_use, counts.most_in_use) = (0, 0);
        (counts.active, counts.most_active) = (0, 0);
    }
}

fn add(now: &AtomicIsize, peak: &AtomicIsize, change: isize, most: isize) {
    let before = now.fetch_add(change, Relaxed);
    if most > 0 {
        peak.fetch_max(before + most, Relaxed);
    }
}

impl Pool {
    /// Bytes of spans that hold blocks, to within 1 MiB for each processor.
    pub fn active(&self) -> usize {
        self.meter.active()
    }

    /// Idle bytes.
    pub fn idle(&self) -> usize {
        self.footprint().dirty + self.shards().map(|shard| shard.lock().bytes()).sum::<usize>()
    }

    /// Bytes that were taken fresh from the system.
    pub fn taken_fresh(&self) -> usize {
        (self.meter.first_touched_small.load(Relaxed) + self.meter.first_touched_huge.load(Relaxed)) as usize
    }

    /// Bytes taken fresh beyond the most that was ever held and what was renewed: they had been purged too early.
    pub fn taken_again(&self) -> usize {
        let once = self.meter.most_held() + self.meter.renewed.load(Relaxed) as usize;
        self.taken_fresh().saturating_sub(once)
    }

    /// The statistics, as of one moment.
    pub(super) fn gather(&self) -> Stats {
        // All shards at once: a block that one processor allocates and another frees would be counted twice, or never.
        self.shards().for_each(|shard| shard.raw().hold());
        // SAFETY: the line above holds the locks, and no other reference is made before their release below.
        let stats = self.meter.stats(self.shards().map(|shard| unsafe { &mut shard.held().counts }));
        // SAFETY: held above; nothing in between can panic.
        self.shards().for_each(|shard| unsafe { shard.raw().release() });
        // The heaps are asked a moment later, as no lock of theirs is taken under a shard's. What they say is made to agree.
        let heaps = self.footprint();
        let idle = (heaps.out + heaps.dirty).saturating_sub(stats.active);
        let held = stats.active + idle;
        self.meter.hold(held.max(stats.peak_active));
        let (mapped, retained) = (heaps.mapped.max(held), heaps.mapped.saturating_sub(held));
        let (peak_held, refaulted_bytes) = (self.meter.most_held(), self.taken_again() as u64);
        Stats { idle, mapped, retained, peak_held, refaulted_bytes, ..stats }
    }
}
