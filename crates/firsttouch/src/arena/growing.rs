//! The slow ways: to the next chunk, and back to an earlier one.

use super::bump::{Bump, Depth, Position, Store, Supply};
use super::chunks::Chunk;
use super::error::Error;
use super::options::Options;
use super::upstream::Upstream;
use crate::allocator::{AllocError, Block, Limit, Request};
use crate::failure;
use crate::layout::{DEFAULT_ALIGN, checked_align, round_up};
use std::num::NonZero;
use std::ptr::NonNull;

/// A chunk's end that is at most this part of it is given up rather than gone back to: a loop that asks for more than
/// it in every turn would go to the next chunk and back in every turn.
const GIVEN_UP: usize = 4;

impl Bump<'_> {
    /// Serves what the current chunk could not.
    #[cold]
    #[inline(never)]
    pub(super) fn grow(&self, size: usize, align: usize, zeroed: bool) -> Result<Block, Error> {
        let align = checked_align(align)?;
        if size == 0 {
            let address = NonZero::new(align).map_or(NonNull::dangling(), NonNull::without_provenance);
            return Ok(Block { address, size, zeroed: true });
        }
        let request = Request { size, align: align.max(DEFAULT_ALIGN), zeroed };
        let served = request.check().and_then(|()| match &self.supply {
            Supply::Fixed { size: capacity, .. } => {
                Err(AllocError::new(size, Limit::Arena { capacity: *capacity, used: self.used() }))
            }
            // Before a request fails all that is idle goes back (law 7).
            Supply::Growing { upstream, options } => self.serve(request, upstream, options).or_else(|_| {
                self.give_back_idle(0); // what is in use stays
                self.serve(request, upstream, options)
            }),
        });
        Ok(served.inspect_err(|&error| failure::remember(error))?)
    }

    /// Goes to a chunk that has room, or takes a block for this request alone.
    fn serve(&self, request: Request, upstream: &Upstream, options: &Options) -> Result<Block, AllocError> {
        let Request { size, align, .. } = request;
        let too_large = AllocError::new(size, Limit::Size);
        // Chunks begin and end at multiples of 64.
        let need = round_up(size, DEFAULT_ALIGN).and_then(|bytes| bytes.checked_add(align - DEFAULT_ALIGN));
        let need = need.ok_or(too_large)?;
        let store = &mut *self.store.borrow_mut();
        let depth = self.depth.get();
        let index = depth.chunks as usize;
        if !store.chunks.find(index, need) {
            if need > store.chunks.next / 2 {
                let block = store.larges.take(depth.larges as usize, request, upstream)?;
                self.depth.set(Depth { larges: depth.larges + 1, ..depth });
                return Ok(block);
            }
            store.chunks.take(index, need, upstream, options.max_chunk)?;
        }
        self.leave(store, self.top.get());
        self.enter(store, index);
        let address = self.bump(size, align).ok_or(too_large)?;
        Ok(Block { address, size, zeroed: false })
    }

    /// Notes what is in use of the current chunk down to `top`, if there is a chunk.
    fn leave(&self, store: &mut Store, top: NonNull<u8>) {
        if let Some(index) = (self.depth.get().chunks as usize).checked_sub(1) {
            let chunk = &mut store.chunks.list[index];
            chunk.used = chunk.end().as_ptr().addr() - top.as_ptr().addr();
        }
    }

    /// Makes the chunk at `index` the current one, all free.
    fn enter(&self, store: &Store, index: usize) {
        let chunk = &store.chunks.list[index];
        self.top.set(chunk.end());
        self.floor.set(chunk.start.as_ptr().addr());
        self.depth.set(Depth { chunks: index as u32 + 1, ..self.depth.get() });
    }

    /// Goes back over a border between chunks, or before a large block.
    #[cold]
    #[inline(never)]
    pub(super) fn rewind_far(&self, to: Position) {
        let store = &mut *self.store.borrow_mut();
        let now = self.depth.replace(to.depth);
        let Some(index) = (to.depth.chunks as usize).checked_sub(1) else {
            return self.start(store);
        };
        let Chunk { start, size, .. } = store.chunks.list[index];
        let left = to.top.as_ptr().addr() - start.as_ptr().addr();
        if now.chunks > to.depth.chunks && left <= size / GIVEN_UP {
            self.leave(store, to.top);
            return self.enter(store, index + 1);
        }
        self.floor.set(start.as_ptr().addr());
        self.top.set(to.top);
    }

    /// Stands where no chunk is in use yet: at the begin of the first, if there is one.
    pub(super) fn start(&self, store: &Store) {
        if store.chunks.list.is_empty() {
            self.depth.set(Depth { chunks: 0, ..self.depth.get() });
            self.top.set(NonNull::dangling());
            self.floor.set(usize::MAX);
        } else {
            self.enter(store, 0);
        }
    }
}
