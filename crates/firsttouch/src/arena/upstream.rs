//! Where an arena's chunks come from.

use crate::allocator::{AllocError, Allocator, Block, Limit, Request};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;
use std::sync::Arc;

/// What the allocator gives that chunks are taken from.
#[derive(Clone, Default)]
pub enum Upstream<'a> {
    /// The C library's `malloc`, called directly: the source `malloc()` takes 20 ns more, because it aligns its blocks
    /// to 64 bytes and is told no size when they come back.
    #[default]
    System,
    /// An allocator that lives as long as anybody needs it.
    Shared(Arc<dyn Allocator>),
    /// An allocator that lives as long as the arena.
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
    /// Takes a block of `size` bytes, not zero, at a multiple of `align`.
    #[inline]
    pub(super) fn take(&self, size: usize, align: usize, zeroed: bool) -> Result<Block, AllocError> {
        let refused = AllocError::new(size, Limit::Upstream);
        let request = Request::bytes(size).with_zeroed(zeroed).aligned(align).map_err(|_| refused)?;
        match self {
            Self::System => {
                let layout = Layout::from_size_align(size, align).map_err(|_| refused)?;
                // SAFETY: the layout is not of zero bytes (caller).
                let address = unsafe { if zeroed { System.alloc_zeroed(layout) } else { System.alloc(layout) } };
                Ok(Block { address: NonNull::new(address).ok_or(refused)?, size, zeroed })
            }
            Self::Shared(allocator) => allocator.allocate(request),
            Self::Borrowed(allocator) => allocator.allocate(request),
        }
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// It came from here, for that size and alignment, and lives; nothing uses it any more.
    #[inline]
    pub(super) unsafe fn give(&self, address: NonNull<u8>, size: usize, align: usize) {
        // SAFETY: the caller's promise; a block was taken with this layout, so it is one.
        unsafe {
            match self {
                Self::System => System.dealloc(address.as_ptr(), Layout::from_size_align_unchecked(size, align)),
                Self::Shared(allocator) => allocator.deallocate(address),
                Self::Borrowed(allocator) => allocator.deallocate(address),
            }
        }
    }
}
