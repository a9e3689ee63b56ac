//! Memory at any alignment up to 1 GiB, lazily zeroed on request, which `posix_memalign` does not offer.

use super::malloc::Malloc;
use super::pages::Pages;
use crate::address_map;
use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::layout::{LayoutError, checked_align};
use crate::os;
use crate::stats::Stats;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// Blocks of this size and more get their own pages.
const PAGES_MIN: usize = 128 << 10;

/// See the module. Small blocks come from the C library.
pub struct Aligned {
    align: usize,
    pages: Arc<Pages>,
}

impl Aligned {
    /// Creates a source of blocks at multiples of `align` bytes.
    ///
    /// # Errors
    /// If `align` is not a power of two up to 1 GiB.
    pub fn new(align: usize) -> Result<Arc<Self>, LayoutError> {
        let align = checked_align(align)?;
        Ok(Arc::new_cyclic(|me: &Weak<Self>| {
            // SAFETY: the source outlives its pages, which it alone holds.
            Self { align, pages: unsafe { Pages::of(me.as_ptr(), false) } }
        }))
    }
}

// SAFETY: both upstreams keep the promises of `Allocator`, and the address tells which of them a block came from (law
// 4).
unsafe impl Allocator for Aligned {
    fn describe(&self) -> Description {
        Description::of("aligned").with(self.align)
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        let request = request.aligned(request.align().max(self.align)).unwrap_or(request); // both were checked
        if request.size() >= PAGES_MIN || request.align() > os::page_size() {
            self.pages.allocate(request)
        } else {
            Malloc.allocate(request)
        }
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: the caller's promise; the address tells which upstream the block came from.
        unsafe {
            match address_map::find(address.as_ptr() as usize) {
                Some(_) => self.pages.deallocate(address),
                None => Malloc.deallocate(address),
            }
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: as for `deallocate`.
        unsafe {
            match address_map::find(address.as_ptr() as usize) {
                Some(_) => self.pages.usable_size(address),
                None => Malloc.usable_size(address),
            }
        }
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: as for `deallocate`.
        unsafe {
            match address_map::find(address.as_ptr() as usize) {
                Some(_) => self.pages.resize_in_place(address, size),
                None => size <= Malloc.usable_size(address),
            }
        }
    }

    fn trim(&self) -> usize {
        self.pages.trim()
    }

    fn accepts(&self, address: usize) -> bool {
        address.is_multiple_of(self.align)
    }

    fn alignment(&self) -> usize {
        self.align
    }

    fn stats(&self) -> Stats {
        self.pages.stats()
    }

    fn calls_out(&self) -> bool {
        false
    }
}
