//! The bump allocator under arenas and scopes: the memory it holds, how it grows, and how it goes back.
//!
//! Allocation moves a pointer downwards, which takes one comparison less than upwards.

use super::{ArenaError, ArenaOptions};
use crate::allocator::{AllocError, Allocator, Block, Limit, Request};
use crate::failure;
use crate::layout::{DEFAULT_ALIGN, LayoutError, MAX_SIZE, checked_align, round_down, round_up};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::num::NonZero;
use std::ptr::NonNull;
use std::sync::Arc;

/// The allocator that an arena gets its memory from.
#[derive(Clone, Default)]
pub enum Upstream<'a> {
    /// The C library's `malloc`, called directly. The allocator `malloc()` takes 20 ns more, because it aligns blocks to
    /// 64 bytes and frees them without knowing their size.
    #[default]
    System,
    /// A shared allocator.
    Shared(Arc<dyn Allocator>),
    /// A borrowed allocator, which outlives the arena.
    Borrowed(&'a dyn Allocator),
}

impl From<Arc<dyn Allocator>> for Upstream<'_> {
    fn from(allocator: Arc<dyn Allocator>) -> Self {
        Self::Shared(allocator)
    }
}

impl<A: Allocator> From<Arc<A>> for Upstream<'_> {
    fn from(allocator: Arc<A>) -> Self {
        Self::Shared(allocator)
    }
}

impl<'a> From<&'a dyn Allocator> for Upstream<'a> {
    fn from(allocator: &'a dyn Allocator) -> Self {
        Self::Borrowed(allocator)
    }
}

impl<'a, A: Allocator> From<&'a A> for Upstream<'a> {
    fn from(allocator: &'a A) -> Self {
        Self::Borrowed(allocator)
    }
}

impl Upstream<'_> {
    /// Allocates a block of `size` bytes, which is not zero, at a multiple of `align`.
    #[inline]
    pub(super) fn allocate(&self, size: usize, align: usize, zeroed: bool) -> Result<Block, AllocError> {
        let refused = AllocError::new(size, Limit::Upstream);
        let request = Request::bytes(size).with_zeroed(zeroed).aligned(align).map_err(|_| refused)?;
        match self {
            Self::System => {
                let layout = Layout::from_size_align(size, align).map_err(|_| refused)?;
                // SAFETY: the size is not zero: chunks have headers (`chunks.rs`), and an arena's size is a
                // `Request`'s.
                let address = unsafe { if zeroed { System.alloc_zeroed(layout) } else { System.alloc(layout) } };
                Ok(Block { address: NonNull::new(address).ok_or(refused)?, size, zeroed })
            }
            Self::Shared(allocator) => allocator.allocate(request),
            Self::Borrowed(allocator) => allocator.allocate(request),
        }
    }

    /// Deallocates a block.
    ///
    /// # Safety
    /// The block was allocated here with this size and alignment, is live, and is not used afterwards.
    #[inline]
    pub(super) unsafe fn deallocate(&self, address: NonNull<u8>, size: usize, align: usize) {
        // SAFETY: the block was allocated here with this layout, and nobody uses it (`Chunks`); the layout is valid, as
        // it was checked on allocation.
        unsafe {
            match self {
                Self::System => System.dealloc(address.as_ptr(), Layout::from_size_align_unchecked(size, align)),
                Self::Shared(allocator) => allocator.deallocate(address),
                Self::Borrowed(allocator) => allocator.deallocate(address),
            }
        }
    }
}

/// Chunks begin and end at multiples of this, the alignment that `malloc` guarantees.
const CHUNK_ALIGN: usize = 16;

/// Reserves room for one more element, for a request of `asked` bytes.
fn make_room<T>(list: &mut Vec<T>, asked: usize) -> Result<(), AllocError> {
    list.try_reserve(1).map_err(|_| AllocError::new(asked, Limit::Upstream))
}

/// A piece of memory, used from its end downwards.
#[derive(Clone, Copy)]
struct Chunk {
    start: NonNull<u8>,
    size: usize,
    /// Bytes that were in use when the next chunk became current.
    used: usize,
}

impl Chunk {
    fn end(&self) -> NonNull<u8> {
        // SAFETY: one past the end of the chunk's block.
        unsafe { self.start.add(self.size) }
    }
}

/// The chunks in the order of their use.
struct Chunks {
    list: Vec<Chunk>,
    /// Size of the next new chunk.
    next_size: usize,
}

impl Chunks {
    const fn new(next_size: usize) -> Self {
        Self { list: Vec::new(), next_size }
    }

    /// Moves the first chunk of at least `need` bytes, from `index` on, to `index`; returns whether there is one.
    #[inline]
    fn find(&mut self, index: usize, need: usize) -> bool {
        let found = (index..self.list.len()).find(|&at| self.list[at].size >= need);
        if let Some(at) = found {
            self.list.swap(index, at);
        }
        found.is_some()
    }

    /// Allocates a chunk of at least `need` bytes, a multiple of [`CHUNK_ALIGN`], and inserts it at `index`. Halves the
    /// intended size as long as the upstream refuses.
    #[inline]
    fn allocate(&mut self, index: usize, need: usize, upstream: &Upstream, max_chunk: usize) -> Result<(), AllocError> {
        make_room(&mut self.list, need)?;
        let mut size = self.next_size.max(need);
        let start = loop {
            let before = failure::now();
            match upstream.allocate(size, CHUNK_ALIGN, false) {
                Ok(block) => break block.address,
                Err(error) if size == need => return Err(AllocError { asked: need, ..error }),
                Err(_) => {
                    failure::retract(before);
                    size = round_down(size / 2, DEFAULT_ALIGN).max(need);
                }
            }
        };
        self.next_size = size.saturating_mul(2).min(max_chunk);
        self.list.insert(index, Chunk { start, size, used: 0 });
        Ok(())
    }

    /// Frees the chunks from `index` on whose size satisfies `release`. They must not be in use.
    fn release(&mut self, index: usize, upstream: &Upstream, mut release: impl FnMut(usize) -> bool) {
        let mut at = 0;
        self.list.retain(|chunk| {
            at += 1;
            let goes = at > index && release(chunk.size);
            if goes {
                // SAFETY: it came from the upstream, is live, and not in use.
                unsafe { upstream.deallocate(chunk.start, chunk.size, CHUNK_ALIGN) };
            }
            !goes
        });
    }

    /// Frees all chunks when the arena is dropped.
    #[inline]
    fn release_all(&mut self, upstream: &Upstream) {
        for chunk in self.list.iter() {
            // SAFETY: as above; the list is not used again.
            unsafe { upstream.deallocate(chunk.start, chunk.size, CHUNK_ALIGN) };
        }
    }

    /// Returns the size of all chunks.
    fn capacity(&self) -> usize {
        self.list.iter().map(|chunk| chunk.size).sum()
    }
}

/// A request to an arena: not of zero bytes, at any alignment.
#[derive(Clone, Copy)]
struct ArenaRequest {
    size: usize,
    align: usize,
    zeroed: bool,
}

#[derive(Clone, Copy)]
struct LargeBlock {
    address: NonNull<u8>,
    size: usize,
    align: usize,
    requested: usize,
}

/// Blocks of their own, for requests that would waste much of a chunk. After a rewind they stay in the list, so that the
/// next round, which often requests the same sizes in the same order, finds them.
struct LargeBlocks(Vec<LargeBlock>);

/// A large block may be recycled for a request that is smaller by half and this many bytes.
const MAX_WASTE: usize = 64 << 10;

impl LargeBlocks {
    const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns a block for the request at `index`: the one that is there, if it fits, or a new one.
    fn allocate(&mut self, index: usize, request: ArenaRequest, upstream: &Upstream) -> Result<Block, AllocError> {
        let ArenaRequest { size, align, zeroed } = request;
        if let Some(large) = self.0.get_mut(index) {
            let aligned = large.address.as_ptr().addr().is_multiple_of(align);
            if aligned && large.size >= size && large.size / 2 <= size.saturating_add(MAX_WASTE) {
                large.requested = size;
                return Ok(Block { address: large.address, size, zeroed: false });
            }
            let misfit = large.address; // not in use, as it lies beyond the depth
            self.retain(upstream, |_, large| large.address != misfit);
        }
        make_room(&mut self.0, size)?;
        let block = upstream.allocate(size, align, zeroed)?;
        self.0.insert(index, LargeBlock { address: block.address, size: block.size, align, requested: size });
        Ok(block)
    }

    /// Frees the blocks from `index` on whose size satisfies `release`. They must not be in use.
    fn release(&mut self, index: usize, upstream: &Upstream, mut release: impl FnMut(usize) -> bool) {
        self.retain(upstream, |at, large| at < index || !release(large.size));
    }

    fn retain(&mut self, upstream: &Upstream, mut keep: impl FnMut(usize, &LargeBlock) -> bool) {
        let mut at = 0;
        self.0.retain(|large| {
            let kept = keep(at, large);
            at += 1;
            if !kept {
                // SAFETY: it came from the upstream, is live, and not in use.
                unsafe { upstream.deallocate(large.address, large.size, large.align) };
            }
            kept
        });
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the size of all blocks.
    fn capacity(&self) -> usize {
        self.0.iter().map(|large| large.size).sum()
    }

    /// Returns the bytes requested of the first `count` blocks.
    fn requested(&self, count: usize) -> usize {
        self.0[..count].iter().map(|large| large.requested).sum()
    }
}

/// On a rewind into an earlier chunk, free space of at most this fraction of it is given up in favour of the next chunk:
/// a loop that needs more than that in every iteration would change chunks twice in every iteration.
const ABANDONED_FRACTION: usize = 4;

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
enum Supply<'a> {
    /// Chunks from an upstream.
    Growing { upstream: Upstream<'a>, options: ArenaOptions },
    /// One fixed range of memory, and the upstream to return it to, if any.
    Fixed { start: NonNull<u8>, size: usize, owner: Option<Upstream<'a>> },
}

/// The memory held, in the order of its use. What lies beyond the [`Depth`] is idle.
struct Store {
    chunks: Chunks,
    large_blocks: LargeBlocks,
}

/// The state that allocation and a near rewind change. The free part of the current chunk lies between `floor` and `top`.
/// `firsttouch.h` declares the same three words, so that C programs can bump inline.
#[repr(C)]
struct Head {
    top: Cell<NonNull<u8>>,
    floor: Cell<usize>,
    depth: Cell<Depth>,
}

/// The state of an arena.
#[repr(C)] // the head comes first
pub(super) struct Bump<'a> {
    head: Head,
    store: RefCell<Store>,
    supply: Supply<'a>,
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
    fn leave_chunk(&self, store: &mut Store, top: NonNull<u8>) {
        if let Some(index) = self.head.depth.get().chunks().checked_sub(1) {
            let chunk = &mut store.chunks.list[index];
            chunk.used = chunk.end().as_ptr().addr() - top.as_ptr().addr();
        }
    }

    /// Makes the chunk at `index`, all of it free, current.
    #[inline]
    fn enter_chunk(&self, store: &Store, index: usize) {
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

/// Returns the error for `n` values at a multiple of `align`.
#[cold]
fn invalid_layout<T>(n: usize, align: usize) -> ArenaError {
    ArenaError::Layout(if align.is_power_of_two() {
        LayoutError::Overflow { shape: vec![n], item_size: size_of::<T>() }
    } else {
        LayoutError::Align(align)
    })
}
