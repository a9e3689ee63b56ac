//! What the C library knows of its blocks.

use std::ffi::c_void;

/// malloc_usable_size(3).
///
/// # Safety
/// The pointer is a live block of the C library's.
pub(super) unsafe fn usable(pointer: *mut c_void) -> usize {
    // SAFETY: the caller's promise.
    unsafe { libc::malloc_usable_size(pointer) }
}
