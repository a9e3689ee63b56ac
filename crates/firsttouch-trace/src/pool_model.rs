//! A model of [`Pool`](firsttouch::adaptors::Pool) that tells how much of a request would have been served from recycled
//! memory.
//!
//! The model counts bytes only: it splits and joins idle memory as if that always fitted. Idle memory decays after a
//! second, and the memory held stays within 10 % and 2 MiB of the peak of the active memory.

use std::collections::VecDeque;

/// Microseconds after which idle memory is purged: a second, and the purger's next tick.
const DECAY: u64 = 1_100_000;
/// Bytes that may be held beyond the proportional bound.
const SLACK: u64 = 2 << 20;

struct IdleMemory {
    since: u64,
    bytes: u64,
}

/// The state of the modelled pool.
#[derive(Default)]
pub(super) struct PoolModel {
    /// Oldest first.
    idle: VecDeque<IdleMemory>,
    idle_bytes: u64,
    active: u64,
    peak_active: u64,
}

impl PoolModel {
    /// Allocates `size` bytes; returns the fraction that is recycled memory.
    pub(super) fn allocate(&mut self, size: u64, now: u64) -> f64 {
        while self.idle.front().is_some_and(|idle| idle.since + DECAY < now) {
            self.purge_oldest();
        }
        self.active += size;
        self.peak_active = self.peak_active.max(self.active);
        let mut missing = size;
        while missing > 0
            && let Some(idle) = self.idle.back_mut()
        {
            let part = idle.bytes.min(missing);
            idle.bytes -= part;
            missing -= part;
            self.idle_bytes -= part;
            if idle.bytes == 0 {
                self.idle.pop_back();
            }
        }
        if missing > 0 {
            self.purge_beyond_bound();
        }
        (size - missing) as f64 / size.max(1) as f64
    }

    /// Frees `size` bytes.
    pub(super) fn free(&mut self, size: u64, now: u64) {
        self.active = self.active.saturating_sub(size);
        if size > 0 {
            self.idle.push_back(IdleMemory { since: now, bytes: size });
            self.idle_bytes += size;
        }
    }

    /// Resizes a block.
    pub(super) fn resize(&mut self, old: u64, new: u64, now: u64) {
        if new > old {
            self.allocate(new - old, now);
        } else {
            self.free(old - new, now);
        }
    }

    fn purge_beyond_bound(&mut self) {
        let bound = self.peak_active + self.peak_active / 10 + SLACK;
        while self.active + self.idle_bytes > bound && self.idle_bytes > 0 {
            self.purge_oldest();
        }
    }

    fn purge_oldest(&mut self) {
        self.idle_bytes -= self.idle.pop_front().map_or(0, |idle| idle.bytes);
    }
}
