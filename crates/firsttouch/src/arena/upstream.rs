//! Where an arena's chunks come from.

use crate::allocator::{AllocError, Allocator, Block, Request};
use crate::sources::Malloc;
use std::ptr::NonNull;
use std::sync::Arc;

static MALLOC: Malloc = Malloc;

/// An allocator that an arena shares or borrows; by default the C library's.
#[derive(Clone)]
pub enum Upstream<'a> {
    /// It lives as long as anybody needs it.
    Shared(Arc<dyn Allocator>),
    /// It lives as long as the arena.
    Borrowed(&'a dyn Allocator),
}

impl Default for Upstream<'_> {
    fn default() -> Self {
        Self::Borrowed(&MALLOC)
    }
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
    fn allocator(&self) -> &dyn Allocator {
        match self {
            Self::Shared(allocator) => &**allocator,
            Self::Borrowed(allocator) => *allocator,
        }
    }

    /// Takes a block.
    pub(super) fn take(&self, request: Request) -> Result<Block, AllocError> {
        self.allocator().allocate(request)
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// It came from here and lives; nothing uses it any more.
    pub(super) unsafe fn give(&self, address: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { self.allocator().deallocate(address) }
    }
}
