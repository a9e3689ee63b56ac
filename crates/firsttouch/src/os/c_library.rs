//! The C library's allocator, on POSIX systems.

use std::ffi::c_void;

/// Allocates zeroed memory (calloc(3)).
pub fn c_calloc(size: usize) -> *mut c_void {
    // SAFETY: it may be called with any size.
    unsafe { libc::calloc(1, size) }
}

/// Allocates memory (malloc(3)).
pub fn c_malloc(size: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe { libc::malloc(size) }
}

/// Frees a block.
///
/// # Safety
/// The block is live, and used no more.
pub unsafe fn c_free(block: *mut c_void) {
    // SAFETY: as demanded.
    unsafe { libc::free(block) }
}

/// Returns the usable size of a block.
///
/// # Safety
/// The block is live.
pub unsafe fn c_usable(block: *mut c_void) -> usize {
    // SAFETY: as demanded.
    unsafe { libc::malloc_usable_size(block) }
}
