//! Blocks with their own pages, which the embedded allocator cannot serve.

use super::{Embedded, Library};
use crate::allocator::{AllocError, Allocator, Block, Request};
use crate::heap::shape::{Kind, huge_page};
use crate::heap::{heap, segment};
use crate::layout::round_up;
use std::ptr::{NonNull, with_exposed_provenance_mut};

impl<L: Library> Embedded<L> {
    /// Serves a request with its own pages, fresh from the system.
    pub(super) fn serve_pages(&self, request: Request) -> Result<Block, AllocError> {
        let page = huge_page();
        let whole = round_up(request.size(), page).unwrap_or(request.size());
        let take = || self.pages.take_or_grow(Kind::Huge, whole, request.align().max(page), false);
        let again = |_| {
            self.trim();
            self.pages.unmap_clean();
            take()
        };
        let span = take().or_else(again).map_err(|error| self.failed(heap::refused(request.size(), error)))?;
        // SAFETY: spans lie in mapped memory, never at zero.
        let address = unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(span.address())) };
        if request.is_zeroed() && span.dirty > 0 {
            // SAFETY: the span was just allocated; it is dirty if the system once refused to discard its pages.
            unsafe { address.write_bytes(0, request.size()) };
        }
        Ok(Block { address, size: span.bytes(), zeroed: request.is_zeroed() || span.dirty == 0 })
    }

    /// Whether the block has its own pages.
    pub(super) fn has_pages(address: NonNull<u8>) -> bool {
        segment::is_huge(address.as_ptr() as usize)
    }
}
