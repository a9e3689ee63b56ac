//! The functions that programs call in place of the C library's.
//!
//! reallocarray(3) is not among them: the C library's calls whichever `realloc` is in force, and a program that brings its
//! own `malloc`, which goes before ours, often brings no `reallocarray`.

use crate::forking;
use crate::large::{self, is_large};
use crate::next;
use firsttouch::vm::address_map::is_foreign;
use libc::c_void;

/// See malloc(3).
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    if is_large(size) { large::malloc(size) } else { next::malloc(size) }
}

/// See calloc(3).
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    if let Some(bytes) = count.checked_mul(size)
        && is_large(bytes)
        && let Some(address) = large::allocate(bytes, 1, true)
    {
        return address;
    }
    next::calloc(count, size)
}

/// See free(3). It keeps errno.
///
/// # Safety
/// As stated there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(address: *mut c_void) {
    // SAFETY: null or a live block, as free(3) demands of the program.
    unsafe { if is_foreign(address as usize) { next::free(address) } else { large::free(address) } }
}

/// See realloc(3).
///
/// # Safety
/// As stated there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(address: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: null or a live block, as realloc(3) demands of the program.
    unsafe {
        if !is_foreign(address as usize) {
            return large::reallocate(address, size);
        }
        if !is_large(size) {
            return next::realloc(address, size);
        }
        if address.is_null() {
            return malloc(size);
        }
        large::take_over(address, size)
    }
}

/// See malloc_usable_size(3).
///
/// # Safety
/// As stated there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(address: *mut c_void) -> usize {
    // SAFETY: null or a live block, as malloc_usable_size(3) demands of the program.
    unsafe {
        match is_foreign(address as usize) {
            true => next::usable_size(address),
            false => large::usable_size(address),
        }
    }
}

/// C23's free(3) for who knows the size.
///
/// # Safety
/// As stated there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(address: *mut c_void, _size: usize) {
    // SAFETY: null or a live block, as free_sized(3) demands of the program.
    unsafe { free(address) }
}

/// The same for aligned blocks.
///
/// # Safety
/// As stated there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(address: *mut c_void, _align: usize, _size: usize) {
    // SAFETY: null or a live block, as free_aligned_sized(3) demands of the program.
    unsafe { free(address) }
}

/// See malloc_trim(3): what the pool keeps goes as well.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(pad: usize) -> libc::c_int {
    let gone = if forking::is_forking() { 0 } else { large::trim() };
    next::trim(pad) | libc::c_int::from(gone > 0)
}
