//! jemalloc, built from its C sources: the library's own heap, sizes, and rules about what it keeps. It handles forks
//! itself.
//!
//! A [`Ledger`] lists its blocks, because nothing else tells them from the C library's (law 4).

use super::refused;
use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::failure;
use crate::heap::ledger::Ledger;
use crate::layout::DEFAULT_ALIGN;
use crate::sync::first::First;
use std::ffi::{CStr, c_int};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use tikv_jemalloc_sys as je;

/// See the module.
pub struct Jemalloc {
    living: Arc<Ledger<()>>,
}

/// Does what jemalloc's own constructor does, if that was not called yet: it registers jemalloc's fork handlers.
pub(super) fn initialize() {
    // SAFETY: a question that allocates nothing.
    unsafe { je::nallocx(1, 0) };
}

/// mallctl(3), for commands without arguments.
fn command(name: &CStr) {
    // SAFETY: nothing is read or written.
    unsafe { je::mallctl(name.as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
}

fn flags(request: Request) -> c_int {
    je::MALLOCX_ALIGN(request.align()) | if request.is_zeroed() { je::MALLOCX_ZERO } else { 0 }
}

impl Jemalloc {
    /// Returns the process's jemalloc.
    pub fn get() -> Arc<Self> {
        static ONE: First<Arc<Jemalloc>> = First::new();
        ONE.get_or_make(|| Arc::new(Self { living: Ledger::new() })).clone()
    }
}

// SAFETY: jemalloc keeps the promises of `Allocator`.
unsafe impl Allocator for Jemalloc {
    fn describe(&self) -> Description {
        Description::of("jemalloc")
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        // SAFETY: the size is not zero, and the alignment is a power of two.
        let take = || NonNull::new(unsafe { je::mallocx(request.size(), flags(request)) }.cast::<u8>());
        let again = || {
            self.trim();
            take()
        };
        let address = take().or_else(again).ok_or_else(|| refused(request.size()))?;
        if let Err(error) = self.living.enter(address, request.size(), ()) {
            // SAFETY: it was just allocated and is not in use.
            unsafe { je::dallocx(address.as_ptr().cast(), 0) };
            failure::remember(error);
            return Err(error);
        }
        // SAFETY: a live block.
        let size = unsafe { je::sallocx(address.as_ptr().cast(), 0) };
        Ok(Block { address, size, zeroed: request.is_zeroed() })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        if self.living.leave(address).is_some() {
            // SAFETY: a block of jemalloc that nobody uses any more (`Allocator::deallocate`).
            unsafe { je::dallocx(address.as_ptr().cast(), 0) }
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: a live block of jemalloc (`Allocator::usable_size`).
        unsafe { je::sallocx(address.as_ptr().cast(), 0) }
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: a live block of jemalloc whose lost end nobody uses (`Allocator::resize_in_place`).
        unsafe { je::xallocx(address.as_ptr().cast(), size.max(1), 0, je::MALLOCX_ALIGN(DEFAULT_ALIGN)) >= size }
    }

    /// Returns 0: how much jemalloc gives back it does not tell.
    fn trim(&self) -> usize {
        command(c"thread.tcache.flush");
        command(c"arena.4096.purge"); // 4096 stands for all arenas
        0
    }

    fn owns(&self, address: NonNull<u8>) -> Option<bool> {
        Some(self.living.get(address).is_some())
    }

    fn must_stay(&self) -> bool {
        self.living.any()
    }

    fn calls_out(&self) -> bool {
        false
    }
}
