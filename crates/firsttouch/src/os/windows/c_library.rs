//! The C runtime that Python and NumPy use.

use std::ffi::c_void;

// Functions of the Universal C Runtime. The `libc` crate binds an older one, whose blocks NumPy could not free.
#[link(name = "api-ms-win-crt-heap-l1-1-0", kind = "raw-dylib")]
unsafe extern "C" {
    /// Allocates zeroed memory.
    #[link_name = "calloc"]
    pub fn c_calloc(count: usize, size: usize) -> *mut c_void;
    /// Allocates memory.
    #[link_name = "malloc"]
    pub fn c_malloc(size: usize) -> *mut c_void;
    /// Frees a block.
    #[link_name = "free"]
    pub fn c_free(block: *mut c_void);
    /// Returns the usable size of a block.
    #[link_name = "_msize"]
    pub fn c_usable(block: *mut c_void) -> usize;
}
