//! The C library's memory at our alignment, in the form of a handler's functions: small blocks of our constructors.

#![allow(unsafe_code)] // Safety: every pointer that comes back came from these functions.

use crate::numpy::abi::Functions;
use firsttouch::allocator::{Allocator, Request};
use firsttouch::sources::Malloc;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// See the module.
pub const FUNCTIONS: Functions = Functions { ctx: null_mut(), malloc, calloc, realloc, free };

fn address(block: Result<firsttouch::Block, firsttouch::AllocError>) -> *mut c_void {
    block.map_or(null_mut(), |block| block.address.as_ptr().cast())
}

unsafe extern "C" fn malloc(_: *mut c_void, size: usize) -> *mut c_void {
    address(Malloc.allocate(Request::bytes(size)))
}

unsafe extern "C" fn calloc(_: *mut c_void, count: usize, size: usize) -> *mut c_void {
    address(Malloc.allocate(Request::zeroed(count.saturating_mul(size))))
}

unsafe extern "C" fn realloc(_: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    match NonNull::new(pointer.cast()) {
        // SAFETY: a live block of the C library's.
        Some(block) => address(unsafe { Malloc.reallocate(block, Request::bytes(size)) }),
        None => address(Malloc.allocate(Request::bytes(size))),
    }
}

unsafe extern "C" fn free(_: *mut c_void, pointer: *mut c_void, _size: usize) {
    if let Some(block) = NonNull::new(pointer.cast()) {
        // SAFETY: a live block of the C library's.
        unsafe { Malloc.deallocate(block) }
    }
}
