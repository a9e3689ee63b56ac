//! When a pool over an upstream returns its idle blocks, and what happens around a fork.

use super::super::purging::idle_limit;
use super::UpstreamPool;
use crate::allocator::Allocator;
use crate::heap::purger::{self, DeferredTrim, Purgeable};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl UpstreamPool {
    /// Does the background purger's work if its thread could not be started.
    #[cold]
    pub(super) fn tick_if_due(&self) {
        if self.clock.is_due() && self.advance() {
            self.run(false);
        }
    }
}

impl UpstreamPool {
    /// Counts a tick; returns whether any block is to be returned.
    fn advance(&self) -> bool {
        let step = u32::from(self.clock.tick());
        self.epoch.fetch_add(step, Relaxed);
        let (bytes, oldest) = {
            let state = self.state.lock();
            (state.free_cache.bytes, state.free_cache.oldest())
        };
        oldest.is_some_and(|epoch| self.is_old(epoch)) || bytes > idle_limit(self.max_idle, bytes)
    }

    /// Whether a block freed in `epoch` has decayed.
    fn is_old(&self, epoch: u32) -> bool {
        let age = self.epoch.load(Relaxed).wrapping_sub(epoch);
        self.clock.decay_epochs.is_some_and(|epochs| age >= epochs.into())
    }
}

impl DeferredTrim for UpstreamPool {
    fn run(&self, all: bool) {
        if all {
            self.trim();
            return;
        }
        self.give_back_while(|epoch, _| self.is_old(epoch));
        let limit = idle_limit(self.max_idle, self.state.lock().free_cache.bytes);
        self.give_back_while(|_, bytes| bytes > limit);
    }
}

impl Purgeable for UpstreamPool {
    fn tick(&self) -> Option<Arc<dyn DeferredTrim>> {
        if self.advance() { self.me.upgrade().map(|me| me as Arc<dyn DeferredTrim>) } else { None }
    }

    fn is_idle(&self) -> bool {
        let state = self.state.lock();
        state.counts.blocks == 0 && state.free_cache.bytes == 0
    }

    fn trim_idle(&self) {
        if !self.upstream.calls_out() {
            self.trim();
        }
    }

    fn deferred_trim(&self) -> Option<Arc<dyn DeferredTrim>> {
        if self.upstream.calls_out() { self.me.upgrade().map(|me| me as Arc<dyn DeferredTrim>) } else { None }
    }

    fn hold(&self) {
        self.forks.fetch_add(1, Relaxed); // after a fork, the process that writes first copies pages to its own node
        self.state.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` acquired it.
        unsafe { self.state.release() }
    }
}

impl Drop for UpstreamPool {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
        self.give_back_while(|_, _| true);
    }
}
