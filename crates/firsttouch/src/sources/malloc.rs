//! The C library's `malloc`, with our alignment.

use super::refused;
use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::failure;
#[cfg(target_vendor = "apple")]
use libc::malloc_size as malloc_usable_size;
#[cfg(not(target_vendor = "apple"))]
use libc::malloc_usable_size;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// See the module. Zeroed requests are cleared with `memset`; [`super::Calloc`] gets zeros from the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Malloc;

/// malloc_usable_size(3).
///
/// # Safety
/// The pointer is a live block of the C library.
pub(super) unsafe fn usable(pointer: *mut c_void) -> usize {
    // SAFETY: as demanded.
    unsafe { malloc_usable_size(pointer) }
}

// SAFETY: posix_memalign and free keep the promises of `Allocator`.
unsafe impl Allocator for Malloc {
    fn describe(&self) -> Description {
        Description::of("malloc")
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        let (size, zeroed) = (request.size(), request.is_zeroed());
        let mut address = null_mut();
        // SAFETY: the alignment is a power of two of at least 64, as `Request` guarantees.
        let result = unsafe { libc::posix_memalign(&mut address, request.align(), size) };
        let address = NonNull::new(address.cast::<u8>()).filter(|_| result == 0).ok_or_else(|| refused(size))?;
        if zeroed {
            // SAFETY: the block was just allocated with this size.
            unsafe { address.write_bytes(0, size) };
        }
        Ok(Block { address, size, zeroed })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { libc::free(address.as_ptr().cast()) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: the caller's promise.
        unsafe { usable(address.as_ptr().cast()) }
    }

    fn calls_out(&self) -> bool {
        false
    }
}
