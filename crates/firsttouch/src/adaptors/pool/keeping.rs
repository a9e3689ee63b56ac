//! How much idle memory a pool keeps, and when it flushes its shards and purges: as `policy.rs` decides.

use super::Pool;
use super::shards::Shard;
use crate::allocator::Allocator;
use crate::heap::Footprint;
use crate::heap::purging::Victims;
use crate::os;
use crate::policy::{self, ASK_MIN, IDLE_SPACE, PURGE_ORDER, SHARD_SPANS, WORTH_A_SEARCH};
use crate::sync::lock::{Lock, Padded};
use std::sync::atomic::Ordering::Relaxed;

impl Pool {
    pub(super) fn shards(&self) -> impl Iterator<Item = &Lock<Shard>> {
        self.shards.iter().map(|Padded(shard)| shard)
    }

    /// Moves the spans that the shards remember to the heaps; returns their number.
    pub(super) fn flush(&self) -> usize {
        let mut count = 0;
        for shard in self.shards() {
            for _ in 0..SHARD_SPANS {
                let oldest = shard.lock().pop_oldest();
                let Some(span) = oldest else { break };
                self.heap_of(span).region(span.kind()).free(span, self.epoch());
                count += 1;
            }
        }
        count
    }

    pub(super) fn footprint(&self) -> Footprint {
        let mut sum = Footprint::default();
        self.heaps.iter().for_each(|heap| heap.add_footprint(&mut sum));
        sum
    }

    /// Called when `fresh` bytes of memory were taken: purges idle memory if more is held than the peak justifies, or
    /// the machine runs short of memory. The kernel's OOM killer does not wait for the background purger.
    pub(super) fn purge_excess(&self, fresh: usize) {
        let footprint = self.footprint();
        let held = footprint.out + footprint.dirty;
        self.meter.hold(held);
        let unasked = self.unasked.fetch_add(fresh, Relaxed) + fresh;
        let shortage = if unasked >= ASK_MIN { self.ask(held) } else { 0 };
        if self.excess(held, shortage) == 0 {
            return;
        }
        // With many shards, what these have not reported may be all of the excess: the figures are asked again.
        self.shards().for_each(|shard| self.meter.report(&mut shard.lock().counts));
        let excess = self.excess(held, shortage);
        if excess == 0 {
            return;
        }
        self.flush();
        let wanted = policy::purged_at_a_time(excess, self.meter.most_active());
        let gone = self.purge_oldest(wanted);
        // Asked anew: another thread may have purged at the same time.
        self.stuck.store(if gone < wanted { self.idle() } else { 0 }, Relaxed);
    }

    /// Queries the bound on address space, and what of `held` bytes is too much for the machine.
    fn ask(&self, held: usize) -> usize {
        self.unasked.store(0, Relaxed);
        self.look_at_bound();
        let idle = held.saturating_sub(self.meter.active());
        if idle < ASK_MIN { 0 } else { idle.saturating_sub(policy::idle_limit(self.options.max_idle, idle)) }
    }

    /// What of `held` bytes is beyond what the peak justifies, or the `shortage`; 0 if too little is idle to look for it.
    fn excess(&self, held: usize, shortage: usize) -> usize {
        let allowed = if self.options.is_automatic() { policy::allowed(self.meter.most_active()) } else { usize::MAX };
        let is_found = held.saturating_sub(self.meter.active()) > self.stuck.load(Relaxed) + WORTH_A_SEARCH;
        if is_found { held.saturating_sub(allowed).max(shortage) } else { 0 }
    }

    /// Queries whether the process has a bound on its address space.
    pub(super) fn look_at_bound(&self) {
        self.idle_space.store(os::address_space_limit().map_or(usize::MAX, |limit| limit / IDLE_SPACE), Relaxed);
    }

    /// After a free, where address space is bounded: trims the pool if more of it is idle than may be, because other code, which
    /// never asks us for memory, would run out.
    #[cold]
    pub(super) fn keep_to_bound(&self) {
        if self.idle() > self.idle_space.load(Relaxed).saturating_add(self.stuck.load(Relaxed)) {
            self.trim();
            self.stuck.store(self.idle(), Relaxed); // or it would be searched for at every free
        }
    }

    /// Does the background purger's work, where it has no thread, if a tick is due.
    #[cold]
    pub fn tick_if_due(&self) {
        if self.clock.is_due() {
            self.decay();
        }
    }

    /// Does the work of a tick: purges what is too old or too much.
    pub(super) fn decay(&self) {
        self.look_at_bound();
        self.clock.tick();
        self.flush();
        if let Some(epochs) = self.clock.decay_epochs {
            self.purge(Victims { min_epochs: policy::epochs_of_parts(epochs), parts: true }, usize::MAX);
            self.purge(Victims { min_epochs: epochs, parts: false }, usize::MAX);
        }
        let idle = self.idle();
        // What could not be purged before may be purged now. This is forgotten once a tick: else each request would search.
        self.stuck.fetch_min(idle, Relaxed);
        let limit = policy::idle_limit(self.options.max_idle, idle);
        if idle > limit {
            self.flush();
            self.purge_oldest(idle - limit);
        }
    }

    /// Purges dirty memory of all heaps until `budget` bytes have gone; bytes purged.
    pub(super) fn purge(&self, victims: Victims, budget: usize) -> usize {
        let now = self.epoch();
        let mut gone = 0;
        for heap in &self.heaps {
            gone += heap.purge(victims, now, budget - budget.min(gone));
        }
        self.meter.purged.fetch_add(gone as u64, Relaxed);
        gone
    }

    /// Purges at least `bytes` of idle memory if there is as much, the longest idle first; bytes purged.
    fn purge_oldest(&self, bytes: usize) -> usize {
        let purge = |gone, min_epochs| gone + self.purge(Victims { min_epochs, parts: false }, bytes - bytes.min(gone));
        PURGE_ORDER.into_iter().fold(0, purge)
    }

    /// Purges all that is idle, but for parts of huge pages; bytes purged.
    pub(super) fn purge_whole(&self) -> usize {
        self.flush();
        self.purge(Victims { min_epochs: 0, parts: false }, usize::MAX)
    }

    /// Purges what is idle in parts of huge pages, which `Allocator::trim` leaves whole; bytes purged.
    pub fn trim_parts(&self) -> usize {
        self.purge(Victims { min_epochs: 0, parts: true }, usize::MAX)
    }
}
