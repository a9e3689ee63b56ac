//! Blocks: allocated, resized, freed.

use crate::allocator::{Handle, behind};
use crate::error::{Status, fail, protect, refuse};
use firsttouch::allocator::{AllocError, Limit, Request};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// Null, with `errno` and the message set.
pub fn no_memory(error: AllocError) -> *mut c_void {
    refuse(error);
    // SAFETY: the thread's own `errno`.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    null_mut()
}

/// The same for an argument.
pub fn invalid(message: impl std::fmt::Display) -> *mut c_void {
    fail(Status::Invalid, message);
    // SAFETY: the thread's own `errno`.
    unsafe { *libc::__errno_location() = libc::EINVAL };
    null_mut()
}

unsafe fn allocate(handle: *const Handle, request: Request) -> *mut c_void {
    // SAFETY: null, or a living handle (header).
    match unsafe { behind(handle) }.allocate(request) {
        Ok(block) => block.address.as_ptr().cast(),
        Err(error) => no_memory(error),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_malloc(handle: *const Handle, size: usize) -> *mut c_void {
    // SAFETY: null, or a living handle (header).
    protect(null_mut(), || unsafe { allocate(handle, Request::bytes(size)) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_calloc(handle: *const Handle, count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        return no_memory(AllocError::new(usize::MAX, Limit::Size));
    };
    // SAFETY: null, or a living handle (header).
    protect(null_mut(), || unsafe { allocate(handle, Request::zeroed(bytes)) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_aligned_alloc(handle: *const Handle, alignment: usize, size: usize) -> *mut c_void {
    protect(null_mut(), || match Request::bytes(size).aligned(alignment) {
        // SAFETY: null, or a living handle (header).
        Ok(request) => unsafe { allocate(handle, request) },
        Err(error) => invalid(error),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_aligned_calloc(handle: *const Handle, alignment: usize, size: usize) -> *mut c_void {
    protect(null_mut(), || match Request::zeroed(size).aligned(alignment) {
        // SAFETY: null, or a living handle (header).
        Ok(request) => unsafe { allocate(handle, request) },
        Err(error) => invalid(error),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_aligned_realloc(
    handle: *const Handle,
    block: *mut c_void,
    alignment: usize,
    size: usize,
) -> *mut c_void {
    protect(null_mut(), || {
        let request = match Request::bytes(size).aligned(alignment) {
            Ok(request) => request,
            Err(error) => return invalid(error),
        };
        // SAFETY: null or a living handle, and null or a living block of it (header).
        unsafe {
            let Some(address) = NonNull::new(block.cast()) else { return allocate(handle, request) };
            match behind(handle).reallocate(address, request) {
                Ok(block) => block.address.as_ptr().cast(),
                Err(error) => no_memory(error),
            }
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_realloc(handle: *const Handle, block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as there.
    unsafe { firsttouch_aligned_realloc(handle, block, 1, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_resize_in_place(handle: *const Handle, block: *mut c_void, size: usize) -> bool {
    let Some(address) = NonNull::new(block.cast()) else { return false };
    // SAFETY: null or a living handle, and a living block of it (header).
    protect(false, || unsafe { behind(handle).resize_in_place(address, size.max(1)) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_free(handle: *const Handle, block: *mut c_void) {
    let Some(address) = NonNull::new(block.cast()) else { return };
    // SAFETY: null or a living handle, and a living block of it (header); the thread's own `errno`.
    protect((), || unsafe {
        let errno = *libc::__errno_location();
        behind(handle).deallocate(address);
        *libc::__errno_location() = errno;
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_usable_size(handle: *const Handle, block: *const c_void) -> usize {
    let Some(address) = NonNull::new(block.cast_mut().cast()) else { return 0 };
    // SAFETY: null or a living handle, and a living block of it (header).
    protect(0, || unsafe { behind(handle).usable_size(address) })
}
