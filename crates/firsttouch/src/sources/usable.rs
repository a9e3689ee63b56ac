//! The usable size of the C library's blocks.

use std::ffi::c_void;

/// malloc_usable_size(3).
///
/// # Safety
/// The pointer is a live block of the C library.
pub(super) unsafe fn usable(pointer: *mut c_void) -> usize {
    // SAFETY: the caller's promise.
    unsafe { libc::malloc_usable_size(pointer) }
}
