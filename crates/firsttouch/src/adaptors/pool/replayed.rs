//! Pools on which the requests of a program are repeated without its pauses.

use super::clock::Clock;
use super::{Options, Pool};
use std::sync::Arc;
use std::time::Duration;

impl Pool {
    /// Creates a pool for which time passes in [`pass_until`](Self::pass_until) alone.
    pub fn for_replay(options: Options) -> Arc<Self> {
        Self::make(options, Clock::by_hand(options.decay), None)
    }

    /// Lets time pass until `now`, counted from the creation, with all that the background purger would have done.
    /// Without effect on pools that are not for replay.
    pub fn pass_until(&self, now: Duration) {
        while self.clock.step(now) {
            self.age();
            if self.heaps.held().dirty + self.cached() == 0 {
                break; // the ticks until then would find nothing
            }
        }
        self.clock.set(now);
    }
}

#[cfg(test)]
mod tests {
    use crate::adaptors::{Options, Pool};
    use crate::allocator::{Allocator, Request};
    use std::time::Duration;

    const SIZE: usize = 1 << 20;

    /// Bytes that are fresh for a block that is requested at each of these milliseconds, and freed at once.
    fn fresh(millis: &[u64]) -> Vec<u64> {
        let pool = Pool::for_replay(Options::default());
        let fresh = || pool.stats().first_touched_small_bytes + pool.stats().first_touched_huge_bytes;
        let each = millis.iter().map(|&at| {
            pool.pass_until(Duration::from_millis(at));
            let before = fresh();
            let block = pool.allocate(Request::bytes(SIZE)).unwrap();
            // SAFETY: the block was just allocated.
            unsafe { pool.deallocate(block.address) };
            fresh() - before
        });
        each.collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "forty days of looks ten times a second")]
    fn what_had_decayed_is_fresh_and_a_pause_is_learned() {
        let fresh = fresh(&[0, 900, 2400, 3900, 5400, 4_000_000_000]);
        let decayed: Vec<_> = fresh.iter().map(|&bytes| bytes > 0).collect();
        assert_eq!(decayed, [true, false, true, false, false, true], "{fresh:?}");
    }

    #[test]
    fn other_pools_go_by_the_time_of_the_machine() {
        let pool = Pool::new(Options::default());
        pool.pass_until(Duration::from_secs(3600));
        assert!(pool.clock.now() < Duration::from_secs(1800));
    }
}
