//! The C runtime that Python and NumPy use.

use std::ffi::c_void;
use std::ptr::null_mut;

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

/// Frees a block of [`c_calloc`].
///
/// # Safety
/// The block is live, and used no more.
pub unsafe fn c_free(block: *mut c_void) {
    // SAFETY: as demanded.
    unsafe { ucrt_free(block) }
}

/// Returns the usable size of a block of [`c_calloc`].
///
/// # Safety
/// The block is live.
pub unsafe fn c_usable(block: *mut c_void) -> usize {
    // SAFETY: as demanded.
    unsafe { _msize(block) }
}

/// The address of the C library's block, right before an aligned one.
///
/// # Safety
/// The block is of [`c_aligned_malloc`], and live.
unsafe fn whole(block: *mut c_void) -> *mut *mut c_void {
    // SAFETY: as demanded.
    unsafe { block.cast::<*mut c_void>().sub(1) }
}

/// Allocates memory at a multiple of `align`, which is a power of two and larger than a pointer.
pub fn c_aligned_malloc(size: usize, align: usize) -> *mut c_void {
    let Some(bytes) = size.checked_add(align) else { return null_mut() };
    // SAFETY: it may be called with any size. The aligned block lies in this one, at least a pointer from its beginning,
    // since the C library aligns to 16 bytes and a smaller multiple of 16 is no multiple of `align`.
    unsafe {
        let raw = ucrt_malloc(bytes);
        if raw.is_null() {
            return raw;
        }
        let block = raw.byte_add(align - raw as usize % align);
        whole(block).write(raw);
        block
    }
}

/// Frees a block of [`c_aligned_malloc`].
///
/// # Safety
/// The block is live, and used no more.
pub unsafe fn c_aligned_free(block: *mut c_void) {
    // SAFETY: as demanded; the address before it is that of the whole block.
    unsafe { ucrt_free(whole(block).read()) }
}

/// Returns the usable size of a block of [`c_aligned_malloc`].
///
/// # Safety
/// The block is live.
pub unsafe fn c_aligned_usable(block: *mut c_void) -> usize {
    // SAFETY: as demanded; the address before it is that of the whole block.
    unsafe {
        let raw = whole(block).read();
        _msize(raw) - (block as usize - raw as usize)
    }
}
