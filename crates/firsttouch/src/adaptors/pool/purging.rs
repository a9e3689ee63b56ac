//! The idle memory of a pool: how much is held, when it is purged, and what happens around a fork.

use super::retention::SLACK;
use super::{Lock, Padded, Pool, Recent, Shard, os};
use crate::allocator::Allocator;
use crate::heap::ages::ticks_since;
use crate::heap::bound;
use crate::heap::purge;
use crate::heap::purger::{DeferredTrim, Purgeable};
use crate::heap::shape::Kind;
use crate::stats::Stats;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// With less idle memory than this, the memory available on the machine is not queried.
const ASK_MIN: usize = 16 << 20;
/// The fraction of a bound on address space that may be idle. A program that without a pool needs five sixths of its
/// bound then still has room for what other code requests, and for this library (16 MiB with all bundled allocators).
const IDLE_SPACE: usize = 16;

impl Pool {
    fn shards(&self) -> impl Iterator<Item = &Lock<Shard>> {
        self.shards.iter().map(|Padded(shard)| shard)
    }

    /// Moves the spans that the shards remember to the heaps if `old` returns `true` for their epoch.
    pub(super) fn flush(&self, old: impl Fn(u8) -> bool) {
        for shard in self.shards() {
            self.flush_shard(shard, &old);
        }
    }

    /// Moves all spans that the shards of one local node remember to its heap; returns their number.
    pub(super) fn flush_node(&self, local_node: u8) -> usize {
        let its = |at: usize| self.heaps.local_nodes.is_none_or(|local_nodes| local_nodes.of_shard(at) == local_node);
        let shards = self.shards().enumerate().filter(|(at, _)| its(*at));
        shards.map(|(_, shard)| self.flush_shard(shard, &|_| true)).sum()
    }

    fn flush_shard(&self, shard: &Lock<Shard>, old: &impl Fn(u8) -> bool) -> usize {
        let mut count = 0;
        loop {
            let recent = shard.lock().pop_oldest(old);
            let Some(recent) = recent else { return count };
            self.heaps.of(recent.span).give(recent.kind, recent.span, recent.epoch);
            count += 1;
        }
    }

    /// Moves the large spans that this processor's shard remembers to the heaps, which are about to be searched.
    pub(super) fn flush_large(&self) {
        let large = self.shard(self.here()).lock().pop_large();
        for Recent { kind, span, epoch } in large.into_iter().flatten() {
            self.heaps.of(span).give(kind, span, epoch);
        }
    }

    pub(super) fn cached(&self) -> usize {
        self.shards().map(|shard| shard.lock().bytes()).sum()
    }

    /// Called when `fresh` bytes of memory were taken: purges idle memory if more is held than the peak justifies, or
    /// the machine runs short of memory.
    pub(super) fn make_room(&self, kind: Kind, fresh: usize) {
        self.look_at_bound();
        let held = self.heaps.held();
        let held = held.out + held.dirty;
        self.meter.peak_held.fetch_max(held as isize, Relaxed);
        let idle = held.saturating_sub(self.meter.active());
        self.retention.taken(kind as usize, fresh, self.meter.most_active(), self.clock.now());
        let shortage = self.shortage(fresh, held, idle);
        let stuck = self.stuck.load(Relaxed);
        if self.beyond(held).max(shortage) > 0 && idle > stuck + SLACK / 8 {
            // With many shards, what they have not reported may be all of it.
            self.shards().for_each(|shard| self.meter.report(&mut shard.lock().counts));
            let idle = held.saturating_sub(self.meter.active());
            let excess = self.beyond(held).max(shortage);
            if excess == 0 || idle <= stuck + SLACK / 8 {
                return;
            }
            self.flush(|_| true);
            // Purges somewhat more at a time, because searching for victims is expensive.
            let wanted = excess + self.retention.allowed(self.meter.most_active()) / 32;
            let gone = self.heaps.purge_oldest(wanted);
            if shortage == 0 {
                self.retention.given_back_for_room(gone, self.clock.now());
            }
            let gone = self.purged(gone);
            self.stuck.store(if gone < wanted { idle.saturating_sub(gone) } else { 0 }, Relaxed);
        }
    }

    /// Bytes by which what is held exceeds what the peak justifies.
    fn beyond(&self, held: usize) -> usize {
        let allowed = || self.retention.allowed(self.meter.most_active());
        if self.options.is_automatic() { held.saturating_sub(allowed()) } else { 0 }
    }

    /// Bytes by which idle memory exceeds what the machine, the container or an outer bound have left, if that may be
    /// little. The kernel's OOM killer does not wait for the background purger.
    fn shortage(&self, fresh: usize, held: usize, idle: usize) -> usize {
        let unasked = self.unasked.fetch_add(fresh, Relaxed) + fresh;
        if unasked < ASK_MIN {
            return 0;
        }
        self.unasked.store(0, Relaxed);
        let by_bound = bound::left().map_or(0, |left| idle.saturating_sub(left));
        if held < self.total / 2 {
            return by_bound;
        }
        let left = os::headroom().saturating_sub(self.total / 16);
        idle.saturating_sub(left).max(by_bound)
    }

    /// Queries whether the process has a bound on its address space.
    fn look_at_bound(&self) {
        self.idle_space.store(os::address_space_limit().map_or(usize::MAX, |limit| limit / IDLE_SPACE), Relaxed);
    }

    /// Returns address space at once if more than `may` bytes of it are idle, because other code, which never asks us
    /// for memory, would run out. Only then does a free make system calls.
    #[cold]
    pub(super) fn vacate(&self, may: usize) {
        if self.idle_space_beyond(may.saturating_add(self.stuck_space.load(Relaxed))) > 0 {
            // Half of it at a time, because searching for victims is expensive. What could not be purged is not
            // searched for at every free.
            self.flush(|_| true);
            self.purged(self.heaps.purge_oldest(self.idle_space_beyond(may / 2)));
            if self.idle_space_beyond(may / 2) > 0 {
                self.heaps.unmap_clean();
            }
            self.stuck_space.store(self.idle_space_beyond(may / 2), Relaxed);
        }
    }

    /// Bytes of idle address space beyond so many.
    fn idle_space_beyond(&self, may: usize) -> usize {
        let held = self.heaps.held();
        (held.mapped.saturating_sub(held.out) + self.cached()).saturating_sub(may)
    }

    /// Does the background purger's work if its thread could not be started.
    #[cold]
    pub(super) fn tick_if_due(&self) {
        if self.clock.is_due() {
            self.age();
        }
    }

    /// Ends an epoch: purges what is too old or too much.
    pub(super) fn age(&self) {
        self.look_at_bound();
        if self.clock.tick() {
            self.heaps.tick();
        }
        let now = self.heaps.epoch();
        self.flush(|epoch| ticks_since(epoch, now) >= 2);
        if let Some(asked) = self.clock.decay_epochs {
            if asked < 2 {
                self.flush(|_| true);
            }
            let epochs = if self.options.is_automatic() { self.retention.patient(asked) } else { asked };
            // Later, because the rest of a split huge page stays on base pages.
            let parts = epochs.max(asked.saturating_add(asked / 2));
            let gone = purge::add(self.heaps.purge(epochs), self.heaps.purge_parts(parts));
            self.retention.decayed(gone, self.clock.now());
            if self.purged(gone) > 0 {
                self.heaps.lower_tops();
            }
        }
        let idle = self.heaps.held().dirty + self.cached();
        // What could not be purged may have gone since. Once a tick, or each request would search.
        self.stuck.fetch_min(idle, Relaxed);
        let idle_space = self.idle_space.load(Relaxed);
        if idle_space != usize::MAX {
            self.stuck_space.fetch_min(self.idle_space_beyond(idle_space / 2), Relaxed);
        }
        let limit = idle_limit(self.max_idle, idle);
        if idle > limit {
            self.flush(|_| true);
            self.purged(self.heaps.purge_oldest(idle - limit));
        }
    }

    /// Records what the regions returned, and returns the sum.
    pub(super) fn purged(&self, gone: [usize; 2]) -> usize {
        let sum = gone[0] + gone[1];
        self.growth.given_back(gone[Kind::Small as usize]);
        self.meter.purged.fetch_add(sum as u64, Relaxed);
        sum
    }

    pub(super) fn gather(&self) -> Stats {
        let mut stats = Stats::default();
        let mut blocks = 0isize;
        let whole = |n: &std::sync::atomic::AtomicIsize| n.load(Relaxed).max(0) as usize;
        // All shards at once: a block that one processor allocates and another frees would be counted twice, or never.
        self.shards().for_each(Lock::hold);
        for shard in self.shards() {
            // SAFETY: the line above holds the lock, and no other reference is made before its release below.
            let counts = unsafe { &mut shard.held().counts };
            self.meter.report(counts);
            blocks += counts.blocks;
            stats.allocations += counts.allocations;
            stats.recycled += counts.recycled;
            stats.allocated_bytes += counts.allocated_bytes;
            stats.recycled_bytes += counts.recycled_bytes;
        }
        stats.in_use = whole(&self.meter.in_use);
        stats.active = whole(&self.meter.active);
        stats.peak_in_use = whole(&self.meter.peak_in_use);
        stats.peak_active = whole(&self.meter.peak_active);
        // SAFETY: held above; nothing in between can panic.
        self.shards().for_each(|shard| unsafe { shard.release() });
        // The heaps are asked a moment later, as no lock of theirs is taken under a shard's. What they say is made to agree.
        let heaps = self.heaps.held();
        let idle = (heaps.out + heaps.dirty).saturating_sub(stats.active);
        let held = stats.active + idle;
        self.meter.peak_held.fetch_max(held as isize, Relaxed);
        Stats {
            idle,
            mapped: heaps.mapped.max(held),
            retained: heaps.mapped.saturating_sub(held),
            peak_held: whole(&self.meter.peak_held),
            blocks: blocks.max(0) as usize,
            first_touched_small_bytes: self.meter.first_touched_small.load(Relaxed),
            first_touched_huge_bytes: self.meter.first_touched_huge.load(Relaxed),
            purged_bytes: self.meter.purged.load(Relaxed),
            refaulted_bytes: self.retention.refaulted.load(Relaxed),
            failures: self.meter.failures.load(Relaxed),
            ..stats
        }
    }
}

/// Bytes that may be idle now: at most what the machine, the container or an outer bound have left.
pub(super) fn idle_limit(max_idle: usize, idle: usize) -> usize {
    if idle < ASK_MIN { max_idle } else { max_idle.min(bound::headroom()) }
}

impl Purgeable for Pool {
    fn tick(&self) -> Option<Arc<dyn DeferredTrim>> {
        if !self.clock.is_set_by_hand() {
            self.age();
        }
        None // its memory comes from no upstream
    }

    fn is_idle(&self) -> bool {
        let held = self.heaps.held();
        held.out + held.dirty == 0
    }

    fn trim_idle(&self) {
        self.trim();
    }

    fn hold(&self) {
        // A heap's locks and a shard's are never held together. The purge lock comes first.
        self.heaps.hold();
        self.shards().for_each(Lock::hold);
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` acquired them all.
        unsafe {
            self.shards().for_each(|shard| shard.release());
            self.heaps.release();
        }
    }
}
