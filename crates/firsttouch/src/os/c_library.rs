//! The C library's allocator, on POSIX systems.

use std::ffi::c_void;
use std::ptr::null_mut;

/// Allocates zeroed memory (calloc(3)).
pub fn c_calloc(size: usize) -> *mut c_void {
    // SAFETY: it may be called with any size.
    unsafe { libc::calloc(1, size) }
}

/// Allocates memory at a multiple of `align`, a power of two and larger than a pointer (posix_memalign(3)).
pub fn c_aligned_malloc(size: usize, align: usize) -> *mut c_void {
    let mut block = null_mut();
    // SAFETY: the C library writes one pointer, and checks the alignment.
    match unsafe { libc::posix_memalign(&mut block, align, size) } {
        0 => block,
        _ => null_mut(),
    }
}

/// Frees a block of [`c_calloc`].
///
/// # Safety
/// The block is live, and used no more.
pub unsafe fn c_free(block: *mut c_void) {
    // SAFETY: as demanded.
    unsafe { libc::free(block) }
}

/// Returns the usable size of a block of [`c_calloc`].
///
/// # Safety
/// The block is live.
pub unsafe fn c_usable(block: *mut c_void) -> usize {
    // SAFETY: as demanded.
    unsafe { libc::malloc_usable_size(block) }
}

/// The same for blocks of [`c_aligned_malloc`], which the C library does not tell apart.
pub use {c_free as c_aligned_free, c_usable as c_aligned_usable};
