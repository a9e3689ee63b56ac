//! Chunks: how large the next one is, and whether there may be one.

use super::super::backing::Refused;
use super::super::space::{Space, Taken};
use super::options::Sizes;
use super::state::{BlockRequest, State};
use super::{Buffer, Chunks, Source};
use crate::allocator::{AllocError, Limit, Request};
use crate::heap::purger;

/// Chunks begin at a page, as most upstreams' do anyway.
const CHUNK_ALIGN: usize = 4096;

impl State {
    /// The bound: chunks may hold twice what lives, and two chunks for each open scope.
    pub(super) fn allowed(&self, sizes: &Sizes, more: usize) -> usize {
        let (living, open) = (self.bumped.saturating_add(more), self.slots.depth.max(1));
        living.saturating_mul(2).saturating_add(sizes.chunk.saturating_mul(2).saturating_mul(open))
    }

    /// Bytes of the next chunk: as much as all before it, so that they double. Nothing where the bound leaves no room.
    fn next_chunk(&self, sizes: &Sizes, size: usize) -> Option<usize> {
        let room = self.allowed(sizes, size).saturating_sub(self.chunks);
        let wanted = (self.chunks + sizes.chunk).next_power_of_two() / 2;
        let whole = wanted.clamp(sizes.chunk, sizes.most).min(room) / sizes.chunk * sizes.chunk;
        (whole > 0).then_some(whole)
    }
}

impl Buffer {
    /// Takes a chunk from the upstream and a block from that.
    #[cold]
    pub(super) fn grow(&self, from: &Chunks, asked: BlockRequest) -> Result<Taken, Refused> {
        let wanted = self.state.lock().next_chunk(&from.sizes, asked.request.size()).ok_or(Refused::Fragmented)?;
        let space = match self.chunk(from, wanted, asked.request.size()) {
            Err(_) if wanted > from.sizes.chunk => self.chunk(from, from.sizes.chunk, asked.request.size())?,
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
            purger::ensure(); // where there is none, the end of the last scope gives back
        }
        Ok(taken.ok_or(AllocError::new(asked.request.size(), Limit::Size))?)
    }

    /// A chunk of `size` bytes that nobody knows yet, and counts.
    fn chunk(&self, from: &Chunks, size: usize, asked: usize) -> Result<Box<Space>, Refused> {
        self.charge(&from.sizes, size, asked)?.chunks += size;
        let request = Request::bytes(size).aligned(CHUNK_ALIGN).map_err(|_| AllocError::new(asked, Limit::Size));
        let space = request.and_then(|request| from.upstream.allocate(request)).and_then(|block| {
            // SAFETY: the block was just taken, has that size, and goes back only once no block lies on it.
            let space = unsafe { Space::new(block.address, size, block.zeroed, from.options.debug) };
            space.map(Box::new).ok_or_else(|| {
                // SAFETY: nobody knows the block.
                unsafe { from.upstream.deallocate(block.address) };
                AllocError::new(asked, Limit::Upstream)
            })
        });
        space.map_err(|error| {
            self.forget(size);
            AllocError { asked, ..error }.into()
        })
    }

    /// A chunk of that size is gone.
    fn forget(&self, size: usize) {
        let mut state = self.state.lock();
        state.held -= size;
        state.chunks -= size;
    }

    /// Gives a chunk back to the upstream that left the list of spaces.
    pub(super) fn give_back(&self, space: Box<Space>) {
        let Source::Chunks(Chunks { upstream, .. }) = &self.source else { return };
        let (address, size) = (space.base(), space.bytes());
        drop(space);
        // SAFETY: nobody has a block on it, and nobody will.
        unsafe { upstream.deallocate(address) };
        self.forget(size);
    }
}
