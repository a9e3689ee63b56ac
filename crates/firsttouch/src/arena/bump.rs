//! The pointer that moves: down, because that takes one comparison less than up.

use super::chunks::Chunks;
use super::larges::Larges;
use super::options::Options;
use super::upstream::Upstream;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// How many chunks are in use, and how many large blocks; one word, so that one comparison says that both stayed, and
/// going back is one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Depth(u64);

impl Depth {
    pub(super) const NONE: Self = Self::new(0, 0);

    pub(super) const fn new(chunks: usize, larges: usize) -> Self {
        Self(chunks as u64 | (larges as u64) << 32)
    }

    pub(super) const fn chunks(self) -> usize {
        self.0 as u32 as usize
    }

    pub(super) const fn larges(self) -> usize {
        (self.0 >> 32) as usize
    }
}

/// All that was given later lies below `top` or in later chunks and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) top: NonNull<u8>,
    pub(super) depth: Depth,
}

// SAFETY: it is a place in the arena's memory, which belongs to no thread.
unsafe impl Send for Position {}

/// Where the memory comes from.
pub(super) enum Supply<'a> {
    /// Chunks of an allocator's.
    Growing { upstream: Upstream<'a>, options: Options },
    /// One piece from `start` on, and the allocator that wants it back, if any does.
    Fixed { start: NonNull<u8>, size: usize, owner: Option<Upstream<'a>> },
}

/// What is held, in the order in which it is used; what lies beyond the [`Depth`] is idle.
pub(super) struct Store {
    pub(super) chunks: Chunks,
    pub(super) larges: Larges,
}

/// See the module. Between `floor` and `top` lies what is free in the chunk that is used now.
pub(super) struct Bump<'a> {
    pub(super) top: Cell<NonNull<u8>>,
    pub(super) floor: Cell<usize>,
    pub(super) depth: Cell<Depth>,
    pub(super) store: RefCell<Store>,
    pub(super) supply: Supply<'a>,
    storage: PhantomData<&'a mut [u8]>,
}

// SAFETY: nothing in it belongs to a thread: memory, and an allocator that any thread may call.
unsafe impl Send for Bump<'_> {}

impl<'a> Bump<'a> {
    /// Without chunks; the first request brings one.
    pub(super) const fn growing(upstream: Upstream<'a>, options: Options) -> Self {
        Self {
            top: Cell::new(NonNull::dangling()),
            floor: Cell::new(usize::MAX), // nothing fits
            depth: Cell::new(Depth::NONE),
            store: RefCell::new(Store { chunks: Chunks::new(options.first_chunk), larges: Larges::new() }),
            supply: Supply::Growing { upstream, options },
            storage: PhantomData,
        }
    }

    /// In the `size` bytes from `start` on.
    ///
    /// # Safety
    /// They are nobody else's for `'a`; with an owner they are a block of its, taken at a multiple of 64.
    pub(super) unsafe fn fixed(start: NonNull<u8>, size: usize, owner: Option<Upstream<'a>>) -> Self {
        Self {
            // SAFETY: the end of what the caller gave.
            top: Cell::new(unsafe { start.add(size) }),
            floor: Cell::new(start.as_ptr().addr()),
            depth: Cell::new(Depth::NONE),
            store: RefCell::new(Store { chunks: Chunks::new(0), larges: Larges::new() }),
            supply: Supply::Fixed { start, size, owner },
            storage: PhantomData,
        }
    }

    /// `size` bytes at a multiple of `align`, if this chunk has them.
    #[inline(always)]
    pub(super) fn bump(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let top = self.top.get();
        let address = top.as_ptr().addr().checked_sub(size)? & !(align - 1);
        if address < self.floor.get() {
            return None;
        }
        // SAFETY: it lies in the chunk, from the floor on, and so is not zero.
        let start = unsafe { NonNull::new_unchecked(top.as_ptr().with_addr(address)) };
        self.top.set(start);
        Some(start)
    }

    #[inline(always)]
    pub(super) fn position(&self) -> Position {
        let top = self.top.get();
        Position { top, depth: self.depth.get() }
    }

    /// Goes back to a position; whether that took more than the pointer.
    ///
    /// # Safety
    /// Nothing uses what was allocated since, and no earlier position was gone back to since.
    #[inline(always)]
    pub(super) unsafe fn rewind(&self, to: Position) -> bool {
        let far = self.depth.get() != to.depth;
        if far {
            self.rewind_far(to);
        } else {
            self.top.set(to.top);
        }
        far
    }
}

impl Drop for Bump<'_> {
    fn drop(&mut self) {
        self.give_back_all();
    }
}
