//! How the front of the process takes blocks back: it asks every address for its owner.

use super::{handler, malloc, resize};
use crate::owners;
use firsttouch::vm::address_map;
use std::ffi::c_void;
use std::ptr::NonNull;

pub(super) unsafe extern "C" fn free_front(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: NumPy gives back a block that one of our functions or the handler before gave.
    unsafe {
        if address_map::is_foreign(pointer as usize) {
            let next = &handler(ctx).next;
            return (next.free)(next.ctx, pointer, size);
        }
        free_owned(ctx, pointer, size)
    }
}

pub(super) unsafe extern "C" fn realloc_front(ctx: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as for `free_front`.
    unsafe {
        let Some(address) = NonNull::new(pointer.cast()) else { return malloc(ctx, size) };
        match owners::of(address) {
            Some(owner) => resize(owner, address, size),
            None => {
                let next = &handler(ctx).next;
                (next.realloc)(next.ctx, pointer, size)
            }
        }
    }
}

#[inline(never)]
pub(super) unsafe extern "C" fn free_owned(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: as for `free_front`.
    unsafe {
        match NonNull::new(pointer.cast()).and_then(|address| Some((address, owners::of(address)?))) {
            Some((address, owner)) => owner.deallocate(address),
            None => {
                let next = &handler(ctx).next;
                (next.free)(next.ctx, pointer, size);
            }
        }
    }
}
