//! The bump allocator under arenas and scopes: allocation moves a pointer downwards, which takes one comparison less than
//! upwards. How it moves back is in [`rewind`](super::rewind).

use super::chunks::{ArenaOptions, ArenaRequest, CHUNK_ALIGN, Chunks, LargeBlocks};
use super::error::ArenaError;
use super::upstream::Upstream;
use crate::allocator::{AllocError, Block, Limit};
use crate::failure;
use crate::layout::{DEFAULT_ALIGN, LayoutError, MAX_SIZE, checked_align, round_up};
use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::num::NonZero;
use std::ptr::NonNull;

/// The number of chunks and the number of large blocks in use, in one word: one comparison tells whether both are
/// unchanged, and one store restores them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Depth(u64);

impl Depth {
    pub(super) const NONE: Self = Self::new(0, 0);

    pub(super) const fn new(chunks: usize, large_blocks: usize) -> Self {
        Self(chunks as u64 | (large_blocks as u64) << 32)
    }

    pub(super) const fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) const fn chunks(self) -> usize {
        self.0 as u32 as usize
    }

    pub(super) const fn large_blocks(self) -> usize {
        (self.0 >> 32) as usize
    }
}

/// A state to rewind to. Whatever is allocated later lies below `top`, or in later chunks and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) top: NonNull<u8>,
    pub(super) depth: Depth,
}

// SAFETY: it is an address in the arena's memory, which is bound to no thread.
unsafe impl Send for Position {}

/// Where memory comes from.
pub(super) enum Supply<'a> {
    /// Chunks from an upstream.
    Growing { upstream: Upstream<'a>, options: ArenaOptions },
    /// One fixed range of memory, and the upstream to return it to, if any.
    Fixed { start: NonNull<u8>, size: usize, owner: Option<Upstream<'a>> },
}

/// The memory held, in the order of its use. What lies beyond the [`Depth`] is idle.
pub(super) struct Store {
    pub(super) chunks: Chunks,
    pub(super) large_blocks: LargeBlocks,
}

/// The state that allocation and a near rewind change. The free part of the current chunk lies between `floor` and `top`.
/// `firsttouch.h` declares the same three words, so that C programs can bump inline.
#[repr(C)]
pub(super) struct Head {
    pub(super) top: Cell<NonNull<u8>>,
    pub(super) floor: Cell<usize>,
    pub(super) depth: Cell<Depth>,
}

/// The state of an arena.
#[repr(C)] // the head comes first
pub(super) struct Bump<'a> {
    pub(super) head: Head,
    pub(super) store: RefCell<Store>,
    pub(super) supply: Supply<'a>,
    storage: PhantomData<&'a mut [u8]>,
}

// SAFETY: nothing in it is bound to a thread: memory, and an allocator that any thread may call.
unsafe impl Send for Bump<'_> {}

impl<'a> Bump<'a> {
    /// Creates a growing bump allocator. The first request allocates the first chunk.
    pub(super) const fn growing(upstream: Upstream<'a>, options: ArenaOptions) -> Self {
        Self {
            head: Head {
                top: Cell::new(NonNull::dangling()),
                floor: Cell::new(usize::MAX), // nothing fits
                depth: Cell::new(Depth::NONE),
            },
            store: RefCell::new(Store { chunks: Chunks::new(options.first_chunk), large_blocks: LargeBlocks::new() }),
            supply: Supply::Growing { upstream, options },
            storage: PhantomData,
        }
    }

    /// Creates a bump allocator in the `size` bytes at `start`.
    ///
    /// # Safety
    /// The memory is exclusively ours for `'a`. If there is an owner, it is one of its blocks, allocated with the default
    /// alignment.
    pub(super) unsafe fn fixed(start: NonNull<u8>, size: usize, owner: Option<Upstream<'a>>) -> Self {
        Self {
            head: Head {
                // SAFETY: one past the end of the memory.
                top: Cell::new(unsafe { start.add(size) }),
                floor: Cell::new(start.as_ptr().addr()),
                depth: Cell::new(Depth::NONE),
            },
            store: RefCell::new(Store { chunks: Chunks::new(0), large_blocks: LargeBlocks::new() }),
            supply: Supply::Fixed { start, size, owner },
            storage: PhantomData,
        }
    }

    /// Allocates from the current chunk; `None` if it has no room.
    #[inline(always)]
    pub(super) fn bump(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let top = self.head.top.get();
        let address = top.as_ptr().addr().checked_sub(size)? & !(align - 1);
        if address < self.head.floor.get() {
            return None;
        }
        // SAFETY: it lies in the chunk, at or above the floor, and so is not null.
        let start = unsafe { NonNull::new_unchecked(top.as_ptr().with_addr(address)) };
        self.head.top.set(start);
        Some(start)
    }

    /// Allocates memory of a layout.
    #[inline(always)]
    pub(super) fn allocate(&self, layout: Layout) -> Result<NonNull<u8>, ArenaError> {
        match self.bump(layout.size(), layout.align()) {
            Some(address) => Ok(address),
            None => Ok(self.grow(layout.size(), layout.align(), false)?.address),
        }
    }

    /// Allocates room for `n` values, at a multiple of `align` bytes at least.
    #[inline(always)]
    pub(super) fn allocate_array<T>(&self, n: usize, align: usize) -> Result<NonNull<T>, ArenaError> {
        let layout = Layout::array::<T>(n).and_then(|layout| layout.align_to(align));
        let layout = layout.map_err(|_| invalid_layout::<T>(n, align))?;
        Ok(self.allocate(layout)?.cast())
    }

    /// Allocates room for `n` values, with all bytes zero.
    #[inline(always)]
    pub(super) fn allocate_zeroed<T>(&self, n: usize) -> Result<NonNull<T>, ArenaError> {
        let layout = Layout::array::<T>(n).map_err(|_| invalid_layout::<T>(n, 1))?;
        let block = match self.bump(layout.size(), layout.align()) {
            Some(address) => Block { address, size: layout.size(), zeroed: false },
            None => self.grow(layout.size(), layout.align(), true)?,
        };
        if !block.zeroed {
            // SAFETY: the block was just allocated with this size.
            unsafe { block.address.write_bytes(0, layout.size()) };
        }
        Ok(block.address.cast())
    }

    /// Allocates what does not fit into the current chunk.
    #[cold]
    #[inline(never)]
    pub(super) fn grow(&self, size: usize, align: usize, zeroed: bool) -> Result<Block, ArenaError> {
        let align = checked_align(align)?;
        if size == 0 {
            let address = NonZero::new(align).map_or(NonNull::dangling(), NonNull::without_provenance);
            return Ok(Block { address, size, zeroed: true });
        }
        let request = ArenaRequest { size, align, zeroed };
        let refused = match &self.supply {
            _ if request.size > MAX_SIZE - align => AllocError::new(size, Limit::Size),
            Supply::Growing { upstream, options } => {
                let before = failure::now();
                if let Ok(block) = self.serve(request, upstream, options) {
                    return Ok(block);
                }
                failure::retract(before);
                match self.release_and_serve(request, upstream, options) {
                    Ok(block) => return Ok(block),
                    Err(error) => AllocError { asked: size, ..error },
                }
            }
            Supply::Fixed { size: capacity, .. } => {
                AllocError::new(size, Limit::Arena { capacity: *capacity, used: self.used() })
            }
        };
        failure::remember(refused);
        Err(refused.into())
    }

    /// Releases all idle memory before a request fails (law 7).
    #[cold]
    #[inline(never)]
    fn release_and_serve(
        &self,
        request: ArenaRequest,
        upstream: &Upstream,
        options: &ArenaOptions,
    ) -> Result<Block, AllocError> {
        self.release_idle(0);
        self.serve(request, upstream, options)
    }

    /// Makes a chunk with room current, or allocates a large block.
    #[inline(always)]
    fn serve(&self, request: ArenaRequest, upstream: &Upstream, options: &ArenaOptions) -> Result<Block, AllocError> {
        let ArenaRequest { size, align, .. } = request;
        let too_large = AllocError::new(size, Limit::Size);
        let need =
            round_up(size, DEFAULT_ALIGN).and_then(|bytes| bytes.checked_add(align.max(CHUNK_ALIGN) - CHUNK_ALIGN));
        let need = need.ok_or(too_large)?;
        let store = &mut *self.store.borrow_mut();
        let depth = self.head.depth.get();
        let index = depth.chunks();
        if !store.chunks.find(index, need) {
            if need > store.chunks.next_size / 2 {
                let block = store.large_blocks.allocate(depth.large_blocks(), request, upstream)?;
                self.head.depth.set(Depth::new(index, depth.large_blocks() + 1));
                return Ok(block);
            }
            store.chunks.allocate(index, need, upstream, options.max_chunk)?;
        }
        self.leave_chunk(store, self.head.top.get());
        self.enter_chunk(store, index);
        let address = self.bump(size, align).ok_or(too_large)?;
        Ok(Block { address, size, zeroed: false })
    }

    /// Records how much of the current chunk, if any, is in use: from `top` to its end.
    #[inline]
    pub(super) fn leave_chunk(&self, store: &mut Store, top: NonNull<u8>) {
        if let Some(index) = self.head.depth.get().chunks().checked_sub(1) {
            let chunk = &mut store.chunks.list[index];
            chunk.used = chunk.end().as_ptr().addr() - top.as_ptr().addr();
        }
    }

    /// Makes the chunk at `index`, all of it free, current.
    #[inline]
    pub(super) fn enter_chunk(&self, store: &Store, index: usize) {
        let chunk = &store.chunks.list[index];
        self.head.top.set(chunk.end());
        self.head.floor.set(chunk.start.as_ptr().addr());
        self.head.depth.set(Depth::new(index + 1, self.head.depth.get().large_blocks()));
    }

    /// Returns the bytes in use, alignment gaps included.
    pub(super) fn used(&self) -> usize {
        let top = self.head.top.get().as_ptr().addr();
        if let Supply::Fixed { start, size, .. } = self.supply {
            return start.as_ptr().addr() + size - top;
        }
        let store = self.store.borrow();
        let depth = self.head.depth.get();
        let large = store.large_blocks.requested(depth.large_blocks());
        match store.chunks.list[..depth.chunks()].split_last() {
            Some((current, earlier)) => {
                let earlier: usize = earlier.iter().map(|chunk| chunk.used).sum();
                large + earlier + (current.end().as_ptr().addr() - top)
            }
            None => large,
        }
    }

    /// Returns the bytes held, in use or idle.
    pub(super) fn capacity(&self) -> usize {
        match self.supply {
            Supply::Fixed { size, .. } => size,
            Supply::Growing { .. } => {
                let store = self.store.borrow();
                store.chunks.capacity() + store.large_blocks.capacity()
            }
        }
    }
}

/// Returns the error for `n` values at a multiple of `align`.
#[cold]
fn invalid_layout<T>(n: usize, align: usize) -> ArenaError {
    ArenaError::Layout(if align.is_power_of_two() {
        LayoutError::Overflow { shape: vec![n], item_size: size_of::<T>() }
    } else {
        LayoutError::Align(align)
    })
}
