//! How a scope's handler takes blocks back: its scope knows them, and all others are NumPy's.

use super::watched::reallocate;
use super::{Handler, handler, malloc};
use firsttouch::scratch::Scope;
use firsttouch::vm::address_map;
use firsttouch_trace::profile;
use std::ffi::c_void;
use std::ptr::NonNull;

/// The scope, and the block, if it may be one that the scope gave.
#[inline(always)]
fn asked(handler: &Handler, pointer: *mut c_void) -> Option<(&Scope, NonNull<u8>)> {
    let scope = handler.scope.as_deref()?;
    if scope.is_inside() && address_map::is_foreign(pointer as usize) {
        return None;
    }
    Some((scope, NonNull::new(pointer.cast())?))
}

pub(super) unsafe extern "C" fn free_scope(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: NumPy gives back a block that the scope or the next handler gave, and passes the handler's own context.
    unsafe {
        let handler = handler(ctx);
        profile::on_free(pointer as usize);
        if asked(handler, pointer).is_none_or(|(scope, address)| !scope.try_deallocate(address)) {
            (handler.next.free)(handler.next.ctx, pointer, size);
        }
    }
}

pub(super) unsafe extern "C" fn realloc_scope(ctx: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as for `free_scope`.
    unsafe {
        if pointer.is_null() {
            return malloc(ctx, size);
        }
        let handler = handler(ctx);
        match asked(handler, pointer).filter(|(scope, address)| scope.knows(*address)) {
            Some((scope, address)) => reallocate(handler, scope, address, size),
            None => (handler.next.realloc)(handler.next.ctx, pointer, size),
        }
    }
}
