//! Returning chunks to the upstream, locking around a fork, and the end of a buffer.
//!
//! Empty chunks are kept for the next iteration; otherwise a loop at the edge of a chunk would allocate and free one
//! in every iteration. Chunks that were unused for a second are returned, by the background purger or, without one, at
//! the end of the last scope.

use super::super::space::Space;
use super::options::Sizes;
use super::state::State;
use super::{Buffer, Chunks, Source, Storage};
use crate::heap::purger::{self, DeferredTrim, Purgeable};
use crate::sync::brief_lock::Guard;
use std::sync::Arc;

/// Ticks of the background purger that a chunk may stay unused.
const PATIENCE: u8 = 10;
/// The chunk that is kept has at most this many times the size of the first.
const KEPT: usize = 4;

impl State {
    /// Whether more is held than live blocks and open scopes account for. If there are none, one chunk is allowed.
    fn is_excessive(&self, sizes: &Sizes) -> bool {
        if self.slots.depth == 0 && self.bumped == 0 {
            return self.spaces.count() > 1 || self.chunks > KEPT * sizes.chunk;
        }
        self.chunks > self.allowed(sizes, 0)
    }

    /// Whether [`State::remove_excess`] would find a chunk.
    fn has_excess(&self, sizes: &Sizes, patience: u8) -> bool {
        self.is_excessive(sizes) && self.spaces.iter().any(|space| space.blocks == 0 && space.quiet >= patience)
    }

    /// Removes and returns an empty chunk that exceeds the bound and was unused for `patience` ticks. The largest is
    /// removed first, except that the largest one that may be kept is removed last.
    fn remove_excess(&mut self, sizes: &Sizes, patience: u8) -> Option<Box<Space>> {
        if !self.is_excessive(sizes) {
            return None;
        }
        let most = KEPT * sizes.chunk;
        let order = |space: &Space| if space.bytes() > most { usize::MAX } else { most - space.bytes() };
        self.spaces.remove(|space| (space.blocks == 0 && space.quiet >= patience).then(|| order(space)))
    }
}

impl Buffer {
    /// After the end of a scope, makes sure that excess chunks will be returned.
    pub(super) fn see_to_excess(&self, state: Guard<'_, State>) {
        let Source::Chunks(Chunks { sizes, .. }) = &self.source else { return };
        let too_much = state.slots.depth == 0 && state.is_excessive(sizes);
        drop(state);
        if too_much && !purger::ensure() {
            self.give_back_excess(sizes, 0);
        }
    }

    fn me(&self) -> Option<Arc<dyn DeferredTrim>> {
        self.me.upgrade().map(|me| me as Arc<dyn DeferredTrim>)
    }

    fn calls_out(&self) -> bool {
        matches!(&self.source, Source::Chunks(Chunks { upstream, .. }) if upstream.calls_out())
    }

    fn give_back_excess(&self, sizes: &Sizes, patience: u8) {
        loop {
            let Some(space) = self.state.lock().remove_excess(sizes, patience) else { return };
            self.give_back(space);
        }
    }

    /// Returns every chunk without live blocks.
    pub(super) fn give_back_all(&self) {
        let Source::Chunks(_) = &self.source else { return };
        loop {
            let Some(space) = self.state.lock().spaces.remove(|space| (space.blocks == 0).then_some(0)) else { return };
            self.give_back(space);
        }
    }
}

impl DeferredTrim for Buffer {
    fn run(&self, all: bool) {
        let Source::Chunks(Chunks { sizes, .. }) = &self.source else { return };
        if all { self.give_back_all() } else { self.give_back_excess(sizes, PATIENCE) }
    }
}

impl Purgeable for Buffer {
    fn tick(&self) -> Option<Arc<dyn DeferredTrim>> {
        let Source::Chunks(Chunks { sizes, .. }) = &self.source else { return None };
        let mut state = self.state.lock();
        state.spaces.age();
        if state.has_excess(sizes, PATIENCE) { self.me() } else { None }
    }

    fn is_idle(&self) -> bool {
        let Source::Chunks(Chunks { sizes, .. }) = &self.source else { return true };
        let state = self.state.lock();
        state.spaces.count() <= 1 && state.chunks <= KEPT * sizes.chunk
    }

    fn trim_idle(&self) {
        if !self.calls_out() {
            self.give_back_all();
        }
    }

    fn deferred_trim(&self) -> Option<Arc<dyn DeferredTrim>> {
        if self.calls_out() { self.me() } else { None }
    }

    fn hold(&self) {
        self.state.hold();
    }

    unsafe fn release(&self) {
        if let Source::Storage(Storage { shared: true, process, .. }) = self.source
            && process != std::process::id()
        {
            // SAFETY: `hold` acquired the lock, and no other thread that could have a reference runs.
            unsafe { self.state.held().closed = true };
        }
        // SAFETY: `hold` acquired it.
        unsafe { self.state.release() }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
        self.give_back_all();
        let lives = self.state.lock().spaces.iter().any(|space| space.blocks > 0);
        if let Source::Storage(Storage { keep, .. }) = &mut self.source
            && lives
        {
            std::mem::forget(keep.take()); // law 8
        }
    }
}
