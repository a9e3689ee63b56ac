//! The allocator that an arena gets its memory from.

use crate::allocator::{AllocError, Allocator, Block, Limit, Request};
use std::alloc::{GlobalAlloc, Layout, System};
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
