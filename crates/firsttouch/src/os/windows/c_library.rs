//! The C runtime that Python and NumPy use.

use std::ffi::c_void;

// Functions of the Universal C Runtime. The `libc` crate binds an older one, whose blocks NumPy could not free.
#[link(name = "api-ms-win-crt-heap-l1-1-0", kind = "raw-dylib")]
unsafe extern "C" {
    #[link_name = "calloc"]
    fn ucrt_calloc(count: usize, size: usize) -> *mut c_void;
    #[link_name = "malloc"]
    fn ucrt_malloc(size: usize) -> *mut c_void;
    #[link_name = "free"]
    fn ucrt_free(block: *mut c_void);
    fn _msize(block: *mut c_void) -> usize;
}

/// Allocates zeroed memory (calloc).
pub fn c_calloc(size: usize) -> *mut c_void {
    // SAFETY: it may be called with any size.
    unsafe { ucrt_calloc(1, size) }
}

/// Allocates memory (malloc).
pub fn c_malloc(size: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe { ucrt_malloc(size) }
}

/// Frees a block.
///
/// # Safety
/// The block is live, and used no more.
pub unsafe fn c_free(block: *mut c_void) {
    // SAFETY: as demanded.
    unsafe { ucrt_free(block) }
}

/// Returns the usable size of a block.
///
/// # Safety
/// The block is live.
pub unsafe fn c_usable(block: *mut c_void) -> usize {
    // SAFETY: as demanded.
    unsafe { _msize(block) }
}
