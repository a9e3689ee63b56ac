//! One region: from its opening until it is closed, what blocks on_alloc and went in it.

use super::state::Open;
use super::{OPEN, STATE, set_up};
use firsttouch::adaptors::is_pool;
use firsttouch::allocator::Allocator;
use firsttouch::heap::caretaker;
use firsttouch::stats::Stats;
use firsttouch::sync::thread;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What was asked for in a region: blocks of at least [`super::MIN_SIZE`] bytes, in bytes as asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of all blocks that on_alloc, with those that blocks grew by.
    pub allocated: u64,
    /// Number of these.
    pub blocks: u64,
    /// Bytes of those that live.
    pub live: usize,
    /// Number of these.
    pub live_blocks: usize,
    /// The most bytes that lived at once.
    pub peak: usize,
    /// The most bytes of one block.
    pub largest: usize,
}

impl Counts {
    pub(super) fn on_alloc(&mut self, size: usize) {
        self.blocks += 1;
        self.live_blocks += 1;
        self.changed(0, size);
    }

    pub(super) fn went(&mut self, size: usize) {
        self.live -= size;
        self.live_blocks -= 1;
    }

    pub(super) fn changed(&mut self, old: usize, new: usize) {
        self.allocated += new.saturating_sub(old) as u64;
        self.live = self.live - old + new;
        self.peak = self.peak.max(self.live);
        self.largest = self.largest.max(new);
    }
}

/// What pools did in a region, in bytes of whole pages unless said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recycling {
    /// That the kernel has to make real.
    pub first_touched: u64,
    /// Served from kept memory.
    pub recycled: u64,
    /// Number of requests served wholly from it.
    pub recycled_blocks: u64,
}

impl Recycling {
    pub(super) fn with(self, before: &Stats, now: &Stats) -> Self {
        let touched = |stats: &Stats| stats.first_touched_small_bytes + stats.first_touched_huge_bytes;
        Self {
            first_touched: self.first_touched + touched(now) - touched(before),
            recycled: self.recycled + now.recycled_bytes - before.recycled_bytes,
            recycled_blocks: self.recycled_blocks + now.recycled - before.recycled,
        }
    }
}

/// The pool at the bottom of a stack of adaptors, or the topmost where pools stand on each other.
pub(super) fn pool_of(allocator: &Arc<dyn Allocator>) -> Option<&Arc<dyn Allocator>> {
    let mut at = Some(allocator);
    while let Some(each) = at {
        if is_pool(each.as_ref()) {
            return Some(each);
        }
        at = each.upstream();
    }
    None
}

/// An open region. It ends with [`Region::close`], or when it is dropped.
pub struct Region {
    number: u64,
}

impl Region {
    /// Begins to count what all threads do, or only this one. The first region to open lets `first` run, before
    /// anything counts.
    pub fn open(only_this_thread: bool, first: impl FnOnce()) -> Self {
        set_up();
        if OPEN.load(Relaxed) == 0 {
            first();
        }
        let mut state = STATE.lock();
        if state.regions.is_empty() {
            state.forget(); // blocks whose end nobody was told of
        }
        state.last += 1;
        let number = state.last;
        let thread = only_this_thread.then(thread);
        let (counts, seen, pools) = (Counts::default(), Vec::new(), Vec::new());
        state.regions.push(Open { number, thread, counts, seen, pools, others: false });
        OPEN.store(state.regions.len(), Relaxed);
        caretaker::rest(true);
        Self { number }
    }

    /// What was counted so far, and what pools did, if that is known.
    pub fn look(&self) -> (Counts, Option<Recycling>) {
        let state = STATE.lock();
        let own = state.regions.iter().find(|region| region.number == self.number);
        let Some((counts, others, pools)) = own.map(|own| (own.counts, own.others, own.pools.clone())) else {
            return Default::default();
        };
        drop(state); // pools have locks of their own, and a fork takes theirs first
        let sum = |sum: Recycling, (pool, before): &(Arc<dyn Allocator>, Stats)| sum.with(before, &pool.stats());
        (counts, (!others).then(|| pools.iter().fold(Recycling::default(), sum)))
    }

    /// Ends it; what [`Region::look`] says at that moment.
    pub fn close(self) -> (Counts, Option<Recycling>) {
        self.look() // and it is dropped
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let mut state = STATE.lock();
        let ended = state.regions.iter().position(|region| region.number == self.number);
        let ended = ended.map(|at| state.regions.swap_remove(at));
        OPEN.store(state.regions.len(), Relaxed);
        caretaker::rest(!state.regions.is_empty());
        state.forget();
        drop(state);
        drop(ended); // outside the lock: it may hold the last reference to an allocator
    }
}
