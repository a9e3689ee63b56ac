//! The C library's `malloc`, with our alignment.

use super::small_blocks;
use super::usable::usable;
use crate::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use crate::failure;
use crate::layout::DEFAULT_ALIGN;
use std::ptr::{NonNull, null_mut};

/// See the module. Zeroed requests are cleared with `memset`; [`super::Calloc`] gets zeros from the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Malloc;

/// Allocates aligned memory from the C library.
pub(super) fn memalign(request: Request) -> Result<Block, AllocError> {
    request.check().inspect_err(|&error| failure::remember(error))?;
    let small = request.size() <= small_blocks::MOST && request.align() == DEFAULT_ALIGN;
    let kept = if small { small_blocks::take(request.size()) } else { None };
    let size = if small { small_blocks::rounded(request.size()) } else { request.size() };
    let Some(address) = kept.or_else(|| fresh(size, request.align())) else {
        let error = AllocError::new(request.size(), Limit::Upstream);
        failure::remember(error);
        return Err(error);
    };
    if request.is_zeroed() {
        // SAFETY: the block was just allocated with this size.
        unsafe { address.write_bytes(0, request.size()) };
    }
    Ok(Block { address, size: request.size(), zeroed: request.is_zeroed() })
}

/// posix_memalign(3).
fn fresh(size: usize, align: usize) -> Option<NonNull<u8>> {
    let mut address = null_mut();
    // SAFETY: the alignment is a power of two of at least 64, as `Request` guarantees.
    let result = unsafe { libc::posix_memalign(&mut address, align, size) };
    NonNull::new(address.cast::<u8>()).filter(|_| result == 0)
}

/// Frees a block of [`memalign`].
///
/// # Safety
/// The block is live and no longer in use.
pub(super) unsafe fn free(address: NonNull<u8>) {
    // SAFETY: a live block of the C library that nobody uses (`Malloc`, `Aligned`).
    unsafe {
        if !small_blocks::put(address) {
            libc::free(address.as_ptr().cast());
        }
    }
}

// SAFETY: posix_memalign and free keep the promises of `Allocator`.
unsafe impl Allocator for Malloc {
    fn describe(&self) -> Description {
        Description::of("malloc")
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        memalign(request)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: `Allocator::deallocate` is called with a live block of this allocator that nobody uses any more, by
        // handlers, adaptors, buffers and fronts.
        unsafe { free(address) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: `Allocator::usable_size` is called with a live block of this allocator, by handlers, adaptors,
        // buffers and fronts.
        unsafe { usable(address.as_ptr().cast()) }
    }

    fn calls_out(&self) -> bool {
        false
    }
}
