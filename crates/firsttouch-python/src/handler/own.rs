//! How handlers of one allocator take blocks back.

use super::watched::reallocate;
use super::{handler, malloc};
use firsttouch::vm::address_map;
use firsttouch_trace::profile;
use std::ffi::c_void;
use std::ptr::NonNull;

/// For handlers of one allocator: whatever lies in segments is its own.
pub(super) unsafe extern "C" fn free_mixed(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: as for `free_front`.
    unsafe {
        if address_map::is_foreign(pointer as usize) {
            let next = &handler(ctx).next;
            return (next.free)(next.ctx, pointer, size);
        }
        free_own(ctx, pointer, size);
    }
}

pub(super) unsafe extern "C" fn realloc_mixed(ctx: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as for `free_front`.
    unsafe {
        if !pointer.is_null() && address_map::is_foreign(pointer as usize) {
            let next = &handler(ctx).next;
            return (next.realloc)(next.ctx, pointer, size);
        }
        realloc_own(ctx, pointer, size)
    }
}

/// For handlers of one allocator that pass nothing on: every block is its own.
pub(super) unsafe extern "C" fn free_own(ctx: *mut c_void, pointer: *mut c_void, _size: usize) {
    // SAFETY: as for `free_front`.
    unsafe {
        if let Some(address) = NonNull::new(pointer.cast()) {
            profile::on_free(pointer as usize);
            handler(ctx).allocator().deallocate(address);
        }
    }
}

pub(super) unsafe extern "C" fn realloc_own(ctx: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as for `free_own`.
    unsafe {
        let handler = handler(ctx);
        match NonNull::new(pointer.cast()) {
            Some(address) => reallocate(handler, handler.allocator().as_ref(), address, size),
            None => malloc(ctx, size),
        }
    }
}
