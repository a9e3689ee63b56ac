//! The C library's `calloc`: every block is zeroed, whether or not that was requested, and lazily if it is large.
//!
//! The C library aligns to 16 bytes, so each request is enlarged by its alignment. A [`Ledger`] notes the address that
//! `calloc` returned.

use super::malloc::usable;
use super::refused;
use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::failure;
use crate::heap::ledger::Ledger;
use crate::sync::first::First;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

/// See the module.
pub struct Calloc {
    /// The address that `calloc` returned for each block.
    living: Arc<Ledger<usize>>,
}

impl Calloc {
    /// Creates an instance, which knows its own blocks.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { living: Ledger::new() })
    }

    /// Returns the process's instance.
    pub fn get() -> Arc<Self> {
        static ONE: First<Arc<Calloc>> = First::new();
        ONE.get_or_make(Self::new).clone()
    }
}

// SAFETY: calloc and free keep the promises of `Allocator`.
unsafe impl Allocator for Calloc {
    fn describe(&self) -> Description {
        Description::of("calloc")
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        let (size, align) = (request.size(), request.align());
        // SAFETY: the sum does not overflow: `check` left room for the alignment.
        let raw = unsafe { libc::calloc(1, size + align) };
        let Some(first) = NonNull::new(raw.cast::<u8>()) else { return Err(refused(size)) };
        // SAFETY: less than the alignment, for which there is room.
        let address = unsafe { first.add(first.align_offset(align)) };
        self.living.enter(address, size, raw as usize).inspect_err(|&error| {
            // SAFETY: it was just allocated and is not in use.
            unsafe { libc::free(raw) };
            failure::remember(error);
        })?;
        Ok(Block { address, size, zeroed: true })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        if let Some(raw) = self.living.leave(address) {
            // SAFETY: what `calloc` returned for a block that nobody uses any more (`Allocator::deallocate`).
            unsafe { libc::free(raw as *mut c_void) }
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: what `calloc` returned for a live block, which ends where the C library's does.
        self.living.get(address).map_or(0, |raw| unsafe { usable(raw as *mut c_void) } - (address.addr().get() - raw))
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
