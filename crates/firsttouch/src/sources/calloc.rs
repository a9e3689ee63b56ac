//! The C library's `calloc`: every block is zeroed, whether or not that was requested, and lazily if it is large.

use super::usable::usable;
use crate::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use crate::failure;
use std::ffi::c_void;
use std::ptr::NonNull;

/// See the module. The C library aligns to 16 bytes, so each request is enlarged by its alignment, and the word before
/// the block holds the address that `calloc` returned.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calloc;

const WORD: usize = size_of::<*mut c_void>();

/// # Safety
/// `address` is a live block of [`Calloc`].
unsafe fn beginning(address: NonNull<u8>) -> *mut c_void {
    // SAFETY: `allocate` wrote the word before the block.
    unsafe { address.as_ptr().cast::<*mut c_void>().sub(1).read() }
}

// SAFETY: calloc and free keep the promises, and the word before a block belongs to it.
unsafe impl Allocator for Calloc {
    fn describe(&self) -> Description {
        Description::of("calloc")
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        // SAFETY: the sum does not overflow: `check` left room for the alignment, which is at least 64.
        unsafe {
            let raw = libc::calloc(1, request.size() + request.align());
            if raw.is_null() {
                let error = AllocError::new(request.size(), Limit::Upstream);
                failure::remember(error);
                return Err(error);
            }
            let skip = WORD + (raw.cast::<u8>().add(WORD)).align_offset(request.align());
            let address = raw.cast::<u8>().add(skip);
            address.cast::<*mut c_void>().sub(1).write(raw);
            Ok(Block { address: NonNull::new_unchecked(address), size: request.size(), zeroed: true })
        }
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: `Allocator::deallocate` is called with a live block of this allocator that nobody uses any more, by
        // handlers, adaptors, buffers and fronts.
        unsafe { libc::free(beginning(address)) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: `Allocator::usable_size` is called with a live block of this allocator, by handlers, adaptors,
        // buffers and fronts; the block ends where the C library's does.
        unsafe {
            let raw = beginning(address);
            usable(raw) - (address.as_ptr() as usize - raw as usize)
        }
    }

    fn calls_out(&self) -> bool {
        false
    }
}
