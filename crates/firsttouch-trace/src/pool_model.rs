//! A model of [`Pool`](firsttouch::adaptors::Pool) that tells how much of a request would have been served from recycled
//! memory.
//!
//! The model counts bytes only: it splits and joins the idle memory of a region as if that always fitted. What is kept,
//! and for how long, is decided by the pool's own rule.

use firsttouch::adaptors::{Retention, huge_min};
use std::collections::VecDeque;
use std::time::Duration;

/// Microseconds of an epoch, and epochs after which idle memory decays.
const EPOCH: u64 = 100_000;
const DECAY: u8 = 10;

struct IdleMemory {
    since: u64,
    bytes: u64,
}

/// The state of the modelled pool.
#[derive(Default)]
pub(super) struct PoolModel {
    /// By region, oldest first.
    idle: [VecDeque<IdleMemory>; 2],
    idle_bytes: u64,
    active: u64,
    peak_active: u64,
    retention: Retention,
}

impl PoolModel {
    /// Allocates `size` bytes; returns the fraction that is recycled memory.
    pub(super) fn allocate(&mut self, size: u64, zeroed: bool, now: u64) -> f64 {
        self.take(region_of(size, zeroed), size, now)
    }

    fn take(&mut self, region: usize, size: u64, now: u64) -> f64 {
        self.let_decay(now);
        self.active += size;
        self.peak_active = self.peak_active.max(self.active);
        let mut missing = size;
        while missing > 0
            && let Some(idle) = self.idle[region].back_mut()
        {
            let part = idle.bytes.min(missing);
            idle.bytes -= part;
            missing -= part;
            self.idle_bytes -= part;
            if idle.bytes == 0 {
                self.idle[region].pop_back();
            }
        }
        if missing > 0 {
            let (time, peak) = (Duration::from_micros(now), self.peak_active as usize);
            self.retention.taken(region, missing as usize, peak, time);
            self.purge_beyond(self.retention.allowed(peak) as u64, time);
        }
        (size - missing) as f64 / size.max(1) as f64
    }

    /// Frees `size` bytes.
    pub(super) fn free(&mut self, size: u64, zeroed: bool, now: u64) {
        self.give(region_of(size, zeroed), size, now);
    }

    fn give(&mut self, region: usize, size: u64, now: u64) {
        self.active = self.active.saturating_sub(size);
        if size > 0 {
            self.idle[region].push_back(IdleMemory { since: now, bytes: size });
            self.idle_bytes += size;
        }
    }

    /// Resizes a block.
    pub(super) fn resize(&mut self, old: u64, new: u64, now: u64) {
        if new > old {
            self.take(region_of(new, false), new - old, now);
        } else {
            self.give(region_of(old, false), old - new, now);
        }
    }

    fn let_decay(&mut self, now: u64) {
        loop {
            // A tick passes before idle memory is looked at.
            let decay = (u64::from(self.retention.patient(DECAY)) + 1) * EPOCH;
            let Some((region, since)) = self.oldest().filter(|&(_, since)| since + decay < now) else { return };
            let gone = self.purge_oldest_of(region);
            self.retention.decayed(gone, Duration::from_micros(since + decay));
        }
    }

    fn purge_beyond(&mut self, bound: u64, now: Duration) {
        while self.active + self.idle_bytes > bound
            && let Some((region, _)) = self.oldest()
        {
            let gone = self.purge_oldest_of(region);
            self.retention.given_back_for_room(gone, now);
        }
    }

    /// The region of the longest idle memory, and since when it has been idle.
    fn oldest(&self) -> Option<(usize, u64)> {
        let since = |region: usize| self.idle[region].front().map(|idle| (region, idle.since));
        [since(1), since(0)].into_iter().flatten().min_by_key(|&(_, since)| since)
    }

    fn purge_oldest_of(&mut self, region: usize) -> [usize; 2] {
        let mut gone = [0; 2];
        gone[region] = self.idle[region].pop_front().map_or(0, |idle| idle.bytes as usize);
        self.idle_bytes -= gone[region] as u64;
        gone
    }
}

fn region_of(size: u64, zeroed: bool) -> usize {
    usize::from(size >= huge_min(zeroed) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// The size of a block on huge pages.
    fn large() -> u64 {
        (huge_min(false) as u64).max(8 * MIB)
    }

    /// Blocks of one region, then of the other; the fraction of their bytes that was recycled.
    fn turn(pool: &mut PoolModel, now: u64) -> f64 {
        let mut recycled = 0.0;
        let large = large();
        for (size, count) in [(large, 5), (MIB / 8, (40 * large / MIB) as u32)] {
            recycled += (0..count).map(|_| pool.allocate(size, false, now)).sum::<f64>() / f64::from(count);
            (0..count).for_each(|_| pool.free(size, false, now));
        }
        recycled / 2.0
    }

    #[test]
    fn turns_that_are_alike_are_learned() {
        let mut pool = PoolModel::default();
        for _ in 0..18 {
            pool.allocate(large(), false, 0);
        }
        let turns: Vec<_> = (0..8).map(|n| turn(&mut pool, n * 20_000)).collect();
        assert!(turns[1] < 0.8, "{turns:?}");
        assert!(turns[7] == 1.0, "{turns:?}");
    }

    #[test]
    fn idle_memory_decays_and_a_pause_is_learned() {
        let mut pool = PoolModel::default();
        let recycled = [0, 1, 2, 3, 9].map(|n| {
            let recycled = pool.allocate(MIB, false, n * 1_500_000);
            pool.free(MIB, false, n * 1_500_000);
            recycled
        });
        assert_eq!(recycled, [0.0, 0.0, 1.0, 1.0, 0.0]);
    }
}
