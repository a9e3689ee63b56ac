//! What an arena holds, and what of it goes back.

use super::bump::{Bump, Depth, Store, Supply};
use crate::layout::DEFAULT_ALIGN;

impl Bump<'_> {
    /// Bytes in use, with what alignment left between.
    pub(super) fn used(&self) -> usize {
        let top = self.top.get().as_ptr().addr();
        if let Supply::Fixed { start, size, .. } = self.supply {
            return start.as_ptr().addr() + size - top;
        }
        let store = self.store.borrow();
        let depth = self.depth.get();
        let larges = store.larges.asked(depth.larges());
        match store.chunks.list[..depth.chunks()].split_last() {
            Some((current, left)) => {
                let left: usize = left.iter().map(|chunk| chunk.used).sum();
                larges + left + (current.end().as_ptr().addr() - top)
            }
            None => larges,
        }
    }

    /// Bytes held, in use or not.
    pub(super) fn capacity(&self) -> usize {
        match self.supply {
            Supply::Fixed { size, .. } => size,
            Supply::Growing { .. } => {
                let store = self.store.borrow();
                store.chunks.held() + store.larges.held()
            }
        }
    }

    /// Where nothing is in use, many chunks and blocks become one chunk, if it is not too much for one: the next round
    /// then finds room for all it asks.
    ///
    /// # Safety
    /// Nobody holds a position.
    #[cold]
    pub(super) unsafe fn settle(&self) {
        let Supply::Growing { upstream, options } = &self.supply else { return };
        let held = self.capacity();
        let store = &mut *self.store.borrow_mut();
        let several = store.chunks.list.len() > 1 || !store.larges.is_empty();
        let depth = self.depth.get();
        let first = Depth::new(1, 0);
        let unused = depth == Depth::NONE || (depth == first && store.chunks.list[0].end() == self.top.get());
        if several && unused && held <= options.max_chunk {
            self.depth.set(Depth::NONE);
            store.chunks.give_back(0, upstream, |_| true);
            store.larges.give_back(0, upstream, |_| true);
            store.chunks.next = held.next_power_of_two().clamp(options.first_chunk, options.max_chunk);
            self.start(store);
        }
    }

    /// Gives back what is idle, but for `keep` bytes.
    pub(super) fn give_back_idle(&self, keep: usize) {
        let Supply::Growing { upstream, .. } = &self.supply else { return };
        let depth = self.depth.get();
        let store = &mut *self.store.borrow_mut();
        let mut room = keep;
        let mut goes = |size: usize| match room.checked_sub(size) {
            Some(rest) => {
                room = rest;
                false
            }
            None => true,
        };
        store.chunks.give_back(depth.chunks(), upstream, |chunk| goes(chunk.size));
        store.larges.give_back(depth.larges(), upstream, |large| goes(large.size));
    }

    /// Goes back to the begin. A growing arena keeps at most `keep` bytes; a fixed one has what it has.
    ///
    /// # Safety
    /// Nothing that was allocated is used any more, and nobody holds a position.
    #[inline]
    pub(super) unsafe fn reset(&mut self, keep: usize) {
        let Store { chunks, larges } = self.store.get_mut();
        if let [chunk] = *chunks.list
            && larges.is_empty()
            && chunk.size <= keep
        {
            self.floor.set(chunk.start.as_ptr().addr());
            self.top.set(chunk.end());
            self.depth.set(Depth::new(1, 0));
        } else {
            self.reset_far(keep);
        }
    }

    #[cold]
    #[inline(never)]
    fn reset_far(&mut self, keep: usize) {
        if let Supply::Fixed { start, size, .. } = self.supply {
            // SAFETY: the end of what was given.
            return self.top.set(unsafe { start.add(size) });
        }
        self.depth.set(Depth::NONE);
        self.give_back_idle(keep);
        self.start(&self.store.borrow());
        // SAFETY: nobody holds a position (caller).
        unsafe { self.settle() };
    }

    /// The end.
    pub(super) fn give_back_all(&self) {
        match &self.supply {
            // SAFETY: it is the owner's block, and nobody can reach it any more.
            Supply::Fixed { start, size, owner: Some(owner) } => unsafe { owner.give(*start, *size, DEFAULT_ALIGN) },
            Supply::Fixed { .. } => {}
            Supply::Growing { upstream, .. } => {
                let mut store = self.store.borrow_mut();
                store.chunks.give_back_all(upstream);
                store.larges.give_back(0, upstream, |_| true);
            }
        }
    }
}
