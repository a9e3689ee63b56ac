//! The slow ways: to the next chunk, and back to an earlier one.

use super::bump::{Bump, Depth, Position, Store, Supply};
use super::chunks::{CHUNK_ALIGN, Chunk};
use super::error::Error;
use super::options::Options;
use super::upstream::Upstream;
use crate::allocator::{AllocError, Block, Limit};
use crate::failure;
use crate::layout::{DEFAULT_ALIGN, MAX_SIZE, checked_align, round_up};
use std::num::NonZero;
use std::ptr::NonNull;

/// A chunk's end that is at most this part of it is given up rather than gone back to: a loop that asks for more than
/// it in every turn would go to the next chunk and back in every turn.
const GIVEN_UP: usize = 4;

/// What is asked of an arena: bytes that are not zero, at any alignment.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub size: usize,
    pub align: usize,
    pub zeroed: bool,
}

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
        let request = Wanted { size, align, zeroed };
        let refused = match &self.supply {
            _ if request.size > MAX_SIZE - align => AllocError::new(size, Limit::Size),
            Supply::Growing { upstream, options } => match self.serve(request, upstream, options) {
                Ok(block) => return Ok(block),
                Err(_) => match self.serve_again(request, upstream, options) {
                    Ok(block) => return Ok(block),
                    Err(error) => AllocError { asked: size, ..error },
                },
            },
            Supply::Fixed { size: capacity, .. } => {
                AllocError::new(size, Limit::Arena { capacity: *capacity, used: self.used() })
            }
        };
        failure::remember(refused);
        Err(refused.into())
    }

    /// Before a request fails all that is idle goes back (law 7).
    #[cold]
    #[inline(never)]
    fn serve_again(&self, request: Wanted, upstream: &Upstream, options: &Options) -> Result<Block, AllocError> {
        self.give_back_idle(0); // what is in use stays
        self.serve(request, upstream, options)
    }

    /// Goes to a chunk that has room, or takes a block for this request alone.
    #[inline(always)]
    fn serve(&self, request: Wanted, upstream: &Upstream, options: &Options) -> Result<Block, AllocError> {
        let Wanted { size, align, .. } = request;
        let too_large = AllocError::new(size, Limit::Size);
        let need =
            round_up(size, DEFAULT_ALIGN).and_then(|bytes| bytes.checked_add(align.max(CHUNK_ALIGN) - CHUNK_ALIGN));
        let need = need.ok_or(too_large)?;
        let store = &mut *self.store.borrow_mut();
        let depth = self.depth.get();
        let index = depth.chunks();
        if !store.chunks.find(index, need) {
            if need > store.chunks.next / 2 {
                let block = store.larges.take(depth.larges(), request, upstream)?;
                self.depth.set(Depth::new(index, depth.larges() + 1));
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
    #[inline]
    fn leave(&self, store: &mut Store, top: NonNull<u8>) {
        if let Some(index) = self.depth.get().chunks().checked_sub(1) {
            let chunk = &mut store.chunks.list[index];
            chunk.used = chunk.end().as_ptr().addr() - top.as_ptr().addr();
        }
    }

    /// Makes the chunk at `index` the current one, all free.
    #[inline]
    fn enter(&self, store: &Store, index: usize) {
        let chunk = &store.chunks.list[index];
        self.top.set(chunk.end());
        self.floor.set(chunk.start.as_ptr().addr());
        self.depth.set(Depth::new(index + 1, self.depth.get().larges()));
    }

    /// Goes back over a border between chunks, or before a large block.
    #[cold]
    #[inline(never)]
    pub(super) fn rewind_far(&self, to: Position) {
        let store = &mut *self.store.borrow_mut();
        let now = self.depth.replace(to.depth);
        let Some(index) = to.depth.chunks().checked_sub(1) else {
            return self.start(store);
        };
        let Chunk { start, size, .. } = store.chunks.list[index];
        let left = to.top.as_ptr().addr() - start.as_ptr().addr();
        if now.chunks() > to.depth.chunks() && left <= size / GIVEN_UP {
            self.leave(store, to.top);
            return self.enter(store, index + 1);
        }
        self.floor.set(start.as_ptr().addr());
        self.top.set(to.top);
    }

    /// Goes back because of a panic.
    ///
    /// # Safety
    /// As for [`Bump::rewind`].
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn unwind(&self, to: Position) {
        // SAFETY: the caller's promise.
        unsafe { self.rewind(to) };
    }

    /// Stands where no chunk is in use yet: at the begin of the first, if there is one.
    pub(super) fn start(&self, store: &Store) {
        if store.chunks.list.is_empty() {
            self.depth.set(Depth::new(0, self.depth.get().larges()));
            self.top.set(NonNull::dangling());
            self.floor.set(usize::MAX);
        } else {
            self.enter(store, 0);
        }
    }
}
