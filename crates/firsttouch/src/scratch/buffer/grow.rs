//! How a buffer grows: the size of the next chunk, and whether one is allowed.

use super::super::backing::Refused;
use super::super::space::{Space, Taken};
use super::options::Sizes;
use super::state::{BlockRequest, State};
use super::{Buffer, Chunks, Source};
use crate::allocator::{AllocError, Limit, Request};
use crate::failure;
use crate::heap::purger;

/// Chunks are aligned to pages, as those of most upstreams are anyway.
const CHUNK_ALIGN: usize = 4096;

impl State {
    /// The bound on the memory in chunks: twice what is live, plus two chunks for each open scope.
    pub(super) fn allowed(&self, sizes: &Sizes, more: usize) -> usize {
        let (living, open) = (self.bumped.saturating_add(more), self.slots.depth.max(1));
        living.saturating_mul(2).saturating_add(sizes.chunk.saturating_mul(2).saturating_mul(open))
    }

    /// The size of the next chunk: as much as all before it, so that they double. `None` if the bound leaves no room.
    fn next_chunk(&self, sizes: &Sizes, size: usize) -> Option<usize> {
        let room = self.allowed(sizes, size).saturating_sub(self.chunks);
        let wanted = (self.chunks + sizes.chunk).next_power_of_two() / 2;
        let whole = wanted.clamp(sizes.chunk, sizes.most).min(room) / sizes.chunk * sizes.chunk;
        (whole > 0).then_some(whole)
    }
}

impl Buffer {
    /// Allocates a chunk from the upstream, and a block in it.
    #[cold]
    pub(super) fn grow(&self, from: &Chunks, asked: BlockRequest) -> Result<Taken, Refused> {
        let wanted = self.state.lock().next_chunk(&from.sizes, asked.request.size()).ok_or(Refused::Fragmented)?;
        let before = failure::now();
        let space = match self.chunk(from, wanted, asked.request.size()) {
            Err(_) if wanted > from.sizes.chunk => {
                failure::retract(before);
                self.chunk(from, from.sizes.chunk, asked.request.size())?
            }
            other => other?,
        };
        let mut state = self.state.lock();
        if !state.spaces.make_room() {
            drop(state);
            self.give_back(space);
            return Err(AllocError::new(asked.request.size(), Limit::Upstream).into());
        }
        state.spaces.insert(space);
        let (taken, alone) = (state.serve(asked, false), state.spaces.count() == 1);
        drop(state);
        if !alone {
            purger::ensure(); // without a background purger, the end of the last scope returns chunks
        }
        Ok(taken.ok_or(AllocError::new(asked.request.size(), Limit::Size))?)
    }

    /// Allocates and counts a chunk of `size` bytes, which is not in the list yet.
    fn chunk(&self, from: &Chunks, size: usize, asked: usize) -> Result<Box<Space>, Refused> {
        self.charge(&from.sizes, size, asked)?.chunks += size;
        let request = Request::bytes(size).aligned(CHUNK_ALIGN).map_err(|_| AllocError::new(asked, Limit::Size));
        let space = request.and_then(|request| from.upstream.allocate(request)).and_then(|block| {
            // SAFETY: the block was just allocated with this size, and is freed only once no block lies in it.
            let space = unsafe { Space::new(block.address, size, block.zeroed, from.options.debug) };
            space.map(Box::new).ok_or_else(|| {
                // SAFETY: the block is not in use.
                unsafe { from.upstream.deallocate(block.address) };
                AllocError::new(asked, Limit::Upstream)
            })
        });
        space.map_err(|error| {
            self.forget(size);
            AllocError { asked, ..error }.into()
        })
    }

    /// Stops counting a chunk of this size.
    fn forget(&self, size: usize) {
        let mut state = self.state.lock();
        state.held -= size;
        state.chunks -= size;
    }

    /// Returns a chunk that was removed from the list of spaces to the upstream.
    pub(super) fn give_back(&self, space: Box<Space>) {
        let Source::Chunks(Chunks { upstream, .. }) = &self.source else { return };
        let (address, size) = (space.base(), space.bytes());
        drop(space);
        // SAFETY: no block lies in it, and it is no longer listed.
        unsafe { upstream.deallocate(address) };
        self.forget(size);
    }
}
