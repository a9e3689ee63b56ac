//! What a pool over an upstream keeps and counts, under one lock.

use super::free_cache::FreeCache;
use crate::stats::Stats;

pub(super) struct State {
    pub free_cache: FreeCache,
    pub counts: Stats,
}

impl State {
    pub(super) fn new(local_nodes: usize) -> Self {
        Self { free_cache: FreeCache::new(local_nodes), counts: Stats::default() }
    }

    /// Counts an allocation.
    pub(super) fn on_alloc(&mut self, asked: usize, usable: usize) {
        self.counts.blocks += 1;
        self.counts.allocations += 1;
        self.counts.allocated_bytes += asked as u64;
        self.changed((0, 0), (asked, usable));
    }

    /// Counts a change of the requested and usable sizes of a live block.
    pub(super) fn changed(&mut self, old: (usize, usize), new: (usize, usize)) {
        let counts = &mut self.counts;
        counts.in_use = counts.in_use + new.0 - old.0;
        counts.active = counts.active + new.1 - old.1;
        counts.peak_in_use = counts.peak_in_use.max(counts.in_use);
        counts.peak_active = counts.peak_active.max(counts.active);
        counts.peak_held = counts.peak_held.max(counts.active + self.free_cache.bytes);
    }
}
