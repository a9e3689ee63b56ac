//! The functions for blocks with an alignment.

use crate::large::{self, is_large};
use crate::next;
use libc::{c_int, c_void};

/// A block of the pool, if it is for the pool and there is memory.
fn large_block(align: usize, size: usize) -> Option<*mut c_void> {
    if is_large(size) && align.is_power_of_two() { large::allocate(size, align, false) } else { None }
}

/// See memalign(3).
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    large_block(align, size).unwrap_or_else(|| next::memalign(align, size))
}

/// See aligned_alloc(3).
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    large_block(align, size).unwrap_or_else(|| next::aligned_alloc(align, size))
}

/// See posix_memalign(3).
///
/// # Safety
/// `result` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(result: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let address = next::keeping_errno(|| memalign(align, size));
    if address.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: `result` may be written, as posix_memalign(3) demands of the program.
    unsafe { *result = address };
    0
}

/// See valloc(3).
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    memalign(firsttouch::os::page_size(), size)
}

/// See pvalloc(3).
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let page = firsttouch::os::page_size();
    memalign(page, size.checked_next_multiple_of(page).unwrap_or(size))
}
