//! What a pool keeps, and what goes back and when: spans from the shards to the heaps, idle memory to the system, as much and
//! as soon as `policy.rs` decides.

use super::Pool;
use super::policy::{self, ASK_MIN, IDLE_SPACE, WORTH_A_SEARCH};
use super::shard::Shard;
use crate::allocator::Allocator;
use crate::heap::Heap;
use crate::heap::purging;
use crate::heap::segment::ticks_since;
use crate::os;
use crate::sync::lock::{Lock, Padded};
use std::sync::atomic::Ordering::Relaxed;

impl Pool {
    pub(super) fn shards(&self) -> impl Iterator<Item = &Lock<Shard>> {
        self.shards.iter().map(|Padded(shard)| shard)
    }

    /// Moves the spans that the shards remember to the heaps if `old` returns `true` for their epoch.
    pub(super) fn flush(&self, old: impl Fn(u8) -> bool) {
        for shard in self.shards() {
            self.flush_shard(shard, &old);
        }
    }

    /// Moves all spans that the shards of one node remember to its heap; returns their number.
    pub(super) fn flush_node(&self, node: u8) -> usize {
        let shards = &self.shards[self.heaps.shards_of(node)];
        shards.iter().map(|Padded(shard)| self.flush_shard(shard, &|_| true)).sum()
    }

    fn flush_shard(&self, shard: &Lock<Shard>, old: &impl Fn(u8) -> bool) -> usize {
        let mut count = 0;
        loop {
            let recent = shard.lock().pop_oldest(old);
            let Some(recent) = recent else { return count };
            self.heaps.of(recent.span).region(recent.span.kind()).give(recent.span, recent.epoch);
            count += 1;
        }
    }

    pub(super) fn cached(&self) -> usize {
        self.shards().map(|shard| shard.lock().bytes()).sum()
    }

    /// Called when `fresh` bytes of memory were taken: purges idle memory if more is held than the peak justifies, or
    /// the machine runs short of memory.
    pub(super) fn make_room(&self, fresh: usize) {
        self.look_at_bound();
        let held = self.heaps.held();
        let held = held.out + held.dirty;
        self.meter.peak_held.fetch_max(held as isize, Relaxed);
        let idle = held.saturating_sub(self.meter.active());
        let shortage = self.shortage(fresh, held, idle);
        let stuck = self.stuck.load(Relaxed);
        if self.beyond(held).max(shortage) > 0 && idle > stuck + WORTH_A_SEARCH {
            // With many shards, what they have not reported may be all of it.
            self.shards().for_each(|shard| self.meter.report(&mut shard.lock().counts));
            let idle = held.saturating_sub(self.meter.active());
            let excess = self.beyond(held).max(shortage);
            if excess == 0 || idle <= stuck + WORTH_A_SEARCH {
                return;
            }
            self.flush(|_| true);
            // Purges somewhat more at a time, because searching for victims is expensive.
            let wanted = excess + policy::allowed(self.meter.most_active()) / 32;
            let gone = self.purge_oldest(wanted);
            // Asked anew: another thread may have purged at the same time.
            self.stuck.store(if gone < wanted { self.idle() } else { 0 }, Relaxed);
        }
    }

    /// Bytes by which what is held exceeds what the peak justifies.
    fn beyond(&self, held: usize) -> usize {
        let allowed = || policy::allowed(self.meter.most_active());
        if self.options.is_automatic() { held.saturating_sub(allowed()) } else { 0 }
    }

    /// Bytes by which idle memory exceeds what the machine or the container have left, if that may be little. The kernel's
    /// OOM killer does not wait for the background purger.
    fn shortage(&self, fresh: usize, held: usize, idle: usize) -> usize {
        let unasked = self.unasked.fetch_add(fresh, Relaxed) + fresh;
        if unasked < ASK_MIN {
            return 0;
        }
        self.unasked.store(0, Relaxed);
        if held < self.total / 2 {
            return 0;
        }
        idle.saturating_sub(os::headroom().saturating_sub(self.total / 16))
    }

    /// Queries whether the process has a bound on its address space.
    pub(super) fn look_at_bound(&self) {
        self.idle_space.store(os::address_space_limit().map_or(usize::MAX, |limit| limit / IDLE_SPACE), Relaxed);
    }

    /// Returns all that is idle at once if that is more than `may` bytes of address space, because other code, which never asks
    /// us for memory, would run out. Only then does a free make system calls.
    #[cold]
    pub(super) fn vacate(&self, may: usize) {
        if self.idle_addresses() > may.saturating_add(self.stuck_space.load(Relaxed)) {
            self.trim();
            self.unmap_clean();
            self.stuck_space.store(self.idle_addresses(), Relaxed); // or it would be searched for at every free
        }
    }

    /// Bytes of idle address space.
    fn idle_addresses(&self) -> usize {
        let held = self.heaps.held();
        held.mapped.saturating_sub(held.out) + self.cached()
    }

    /// Does the background purger's work, where it has no thread, if a tick is due.
    #[cold]
    pub fn tick_if_due(&self) {
        if self.clock.is_due() {
            self.age();
        }
    }

    /// Ends an epoch: purges what is too old or too much.
    pub(super) fn age(&self) {
        self.look_at_bound();
        if self.clock.tick() {
            self.heaps.all().for_each(Heap::tick);
        }
        let now = self.heaps.epoch();
        self.flush(|epoch| ticks_since(epoch, now) >= 2);
        if let Some(epochs) = self.clock.decay_epochs {
            if epochs < 2 {
                self.flush(|_| true);
            }
            // Parts of huge pages later, because the rest of a split one stays on base pages.
            let parts = self.heaps.purge_parts(epochs.saturating_add(epochs / 2));
            self.purged(self.heaps.purge(epochs) + parts);
        }
        let idle = self.idle();
        // What could not be purged may have gone since. Once a tick, or each request would search.
        self.stuck.fetch_min(idle, Relaxed);
        self.stuck_space.fetch_min(self.idle_addresses(), Relaxed);
        let limit = policy::idle_limit(self.max_idle, idle);
        if idle > limit {
            self.flush(|_| true);
            self.purge_oldest(idle - limit);
        }
    }

    /// Records and returns the bytes that the heaps returned.
    pub(super) fn purged(&self, gone: usize) -> usize {
        self.meter.purged.fetch_add(gone as u64, Relaxed);
        gone
    }

    /// Purges at least `bytes` of idle memory if there is as much, the longest idle first; bytes purged.
    fn purge_oldest(&self, bytes: usize) -> usize {
        self.purged(purging::purge_oldest(self.heaps.all(), bytes))
    }

    pub(super) fn unmap_clean(&self) {
        for heap in self.heaps.all() {
            heap.unmap_clean();
        }
    }

    /// Gives back what is idle in parts of huge pages, which `Allocator::trim` leaves whole; bytes given back.
    pub fn trim_parts(&self) -> usize {
        self.purged(self.heaps.purge_parts(0))
    }
}
