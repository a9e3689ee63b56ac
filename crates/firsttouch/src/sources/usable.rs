//! The usable size of the C library's blocks.

#[cfg(target_vendor = "apple")]
use libc::malloc_size as malloc_usable_size;
#[cfg(not(target_vendor = "apple"))]
use libc::malloc_usable_size;
use std::ffi::c_void;

/// malloc_usable_size(3).
///
/// # Safety
/// The pointer is a live block of the C library.
pub(super) unsafe fn usable(pointer: *mut c_void) -> usize {
    // SAFETY: the pointer is a live block of the C library (`Malloc`, `Calloc`, `small_blocks`).
    unsafe { malloc_usable_size(pointer) }
}
