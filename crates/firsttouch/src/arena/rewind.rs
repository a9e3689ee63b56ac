//! How a bump allocator goes back: to a position, to its beginning, and to its upstream.

use super::bump::{Bump, Depth, Position, Store, Supply};
use super::chunks::Chunk;
use crate::layout::DEFAULT_ALIGN;
use std::ptr::NonNull;

/// On a rewind into an earlier chunk, free space of at most this fraction of it is given up in favour of the next chunk:
/// a loop that needs more than that in every iteration would change chunks twice in every iteration.
const ABANDONED_FRACTION: usize = 4;

impl Bump<'_> {
    /// Returns the current position.
    #[inline(always)]
    pub(super) fn position(&self) -> Position {
        let top = self.head.top.get();
        Position { top, depth: self.head.depth.get() }
    }

    /// Rewinds to a position; returns whether that took more than moving the pointer.
    ///
    /// # Safety
    /// What was allocated since is not used afterwards, and no earlier position was rewound to since.
    #[inline(always)]
    pub(super) unsafe fn rewind(&self, to: Position) -> bool {
        let far = self.head.depth.get() != to.depth;
        if far {
            self.rewind_far(to);
        } else {
            self.head.top.set(to.top);
        }
        far
    }

    /// Rewinds because of a panic.
    ///
    /// # Safety
    /// As for [`rewind`](Self::rewind).
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn unwind(&self, to: Position) {
        // SAFETY: as for `rewind`, what was allocated since the mark is not used (`Scope::drop`).
        unsafe { self.rewind(to) };
    }

    /// Rewinds into an earlier chunk, or before a large block.
    #[cold]
    #[inline(never)]
    fn rewind_far(&self, to: Position) {
        let store = &mut *self.store.borrow_mut();
        let from = self.head.depth.replace(to.depth);
        let Some(index) = to.depth.chunks().checked_sub(1) else {
            return self.rewind_to_start(store);
        };
        let Chunk { start, size, .. } = store.chunks.list[index];
        let free = to.top.as_ptr().addr() - start.as_ptr().addr();
        if from.chunks() > to.depth.chunks() && free <= size / ABANDONED_FRACTION {
            self.leave_chunk(store, to.top);
            return self.enter_chunk(store, index + 1);
        }
        self.head.floor.set(start.as_ptr().addr());
        self.head.top.set(to.top);
    }

    /// Rewinds to the beginning of the first chunk, if there is one.
    fn rewind_to_start(&self, store: &Store) {
        if store.chunks.list.is_empty() {
            self.head.depth.set(Depth::new(0, self.head.depth.get().large_blocks()));
            self.head.top.set(NonNull::dangling());
            self.head.floor.set(usize::MAX);
        } else {
            self.enter_chunk(store, 0);
        }
    }

    /// If nothing is in use, replaces several chunks and blocks by one chunk of their total size, up to the largest chunk
    /// size, so that the next round needs no other.
    ///
    /// # Safety
    /// There are no positions to rewind to.
    #[cold]
    pub(super) unsafe fn consolidate(&self) {
        let Supply::Growing { upstream, options } = &self.supply else { return };
        let capacity = self.capacity();
        let store = &mut *self.store.borrow_mut();
        let several = store.chunks.list.len() > 1 || !store.large_blocks.is_empty();
        let depth = self.head.depth.get();
        let first = Depth::new(1, 0);
        let unused = depth == Depth::NONE || (depth == first && store.chunks.list[0].end() == self.head.top.get());
        if several && unused && capacity <= options.max_chunk {
            self.head.depth.set(Depth::NONE);
            store.chunks.release(0, upstream, |_| true);
            store.large_blocks.release(0, upstream, |_| true);
            store.chunks.next_size = capacity.next_power_of_two().clamp(options.first_chunk, options.max_chunk);
            self.rewind_to_start(store);
        }
    }

    /// Rewinds to the beginning. A growing bump allocator keeps at most `keep` bytes.
    ///
    /// # Safety
    /// Nothing that was allocated is used afterwards, and there are no positions to rewind to.
    #[inline]
    pub(super) unsafe fn reset(&mut self, keep: usize) {
        let Store { chunks, large_blocks } = self.store.get_mut();
        if let [chunk] = *chunks.list
            && large_blocks.is_empty()
            && chunk.size <= keep
        {
            self.head.floor.set(chunk.start.as_ptr().addr());
            self.head.top.set(chunk.end());
            self.head.depth.set(Depth::new(1, 0));
        } else {
            self.reset_far(keep);
        }
    }

    #[cold]
    #[inline(never)]
    fn reset_far(&mut self, keep: usize) {
        if let Supply::Fixed { start, size, .. } = self.supply {
            // SAFETY: one past the end of the memory.
            return self.head.top.set(unsafe { start.add(size) });
        }
        self.head.depth.set(Depth::NONE);
        self.release_idle(keep);
        self.rewind_to_start(&self.store.borrow());
        // SAFETY: there are no positions: the arena is borrowed exclusively (`reset`).
        unsafe { self.consolidate() };
    }

    /// Returns idle memory, except for up to `keep` bytes, to the upstream.
    pub(super) fn release_idle(&self, keep: usize) {
        let Supply::Growing { upstream, .. } = &self.supply else { return };
        let depth = self.head.depth.get();
        let store = &mut *self.store.borrow_mut();
        let mut allowance = keep;
        let mut release = |size: usize| match allowance.checked_sub(size) {
            Some(rest) => {
                allowance = rest;
                false
            }
            None => true,
        };
        store.chunks.release(depth.chunks(), upstream, &mut release);
        store.large_blocks.release(depth.large_blocks(), upstream, &mut release);
    }
}

impl Drop for Bump<'_> {
    fn drop(&mut self) {
        match &self.supply {
            Supply::Fixed { start, size, owner: Some(owner) } => {
                // SAFETY: it is the owner's block, and cannot be reached any more.
                unsafe { owner.deallocate(*start, *size, DEFAULT_ALIGN) }
            }
            Supply::Fixed { .. } => {}
            Supply::Growing { upstream, .. } => {
                let mut store = self.store.borrow_mut();
                store.chunks.release_all(upstream);
                store.large_blocks.release(0, upstream, |_| true);
            }
        }
    }
}
