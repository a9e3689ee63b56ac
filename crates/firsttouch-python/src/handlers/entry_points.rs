//! The functions that NumPy calls: the usual ones of every handler, and those of the front while a profile is taken, which
//! also report what it leaves to NumPy.

#![allow(unsafe_code)] // Safety: NumPy calls these with the handler's own context and its own live blocks.

use crate::handlers::allocate::{calloc, malloc};
use crate::handlers::deallocate::{free, free_owned, realloc};
use crate::handlers::handler::{Handler, Kind, handler};
use crate::handlers::profile_reports::{report_block, report_move, report_request};
use crate::numpy::abi::{Functions, RawAllocator, RawHandler};
use crate::python::guarded::Guarded;
use firsttouch::allocator::Allocator;
use firsttouch::scratch::Scope;
use firsttouch_trace::profile;
use pyo3::prelude::*;
use std::ffi::c_void;
use std::sync::Arc;

/// A handler that serves from `allocator`; requests below `small` bytes and foreign addresses go to `next`.
pub fn new_handler(kind: Kind, allocator: Arc<dyn Allocator>, small: usize, next: Functions) -> Box<Handler> {
    with_functions(Handler::new(kind, allocator, small, next, None))
}

/// The handler of a scope, which knows what served before it.
pub fn new_scope_handler(scope: Arc<Scope>, small: usize, next: Functions, before: Py<PyAny>) -> Box<Handler> {
    let before = Guarded::new(before);
    with_functions(Handler::new(Kind::Scope, scope, small, next, Some(before)))
}

fn with_functions(mut handler: Box<Handler>) -> Box<Handler> {
    let free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) = if handler.has_rest { free_owned } else { free };
    handler.set_functions(|ctx| RawAllocator {
        ctx,
        malloc: Some(malloc),
        calloc: Some(calloc),
        realloc: Some(realloc),
        free: Some(free),
    });
    handler
}

/// Tells the profile of every block of the front from now on, or of none.
pub fn set_profiled(front: &Handler, on: bool) {
    let functions: [*mut c_void; 4] = match on {
        true => [malloc_profiled as _, calloc_profiled as _, realloc_profiled as _, free_profiled as _],
        false => [malloc as _, calloc as _, realloc as _, free as _],
    };
    // SAFETY: the functions have these types; the profiled ones pass all blocks on to the plain ones.
    unsafe { front.swap_functions(functions) };
}

/// Our handler behind NumPy's pointer, if it is one of this copy's.
///
/// # Safety
/// The pointer is a living handler.
pub unsafe fn from_raw<'a>(raw: *const RawHandler) -> Option<&'a Handler> {
    // SAFETY: `malloc` is this copy's own function, so `raw` is the first field of a Handler.
    unsafe {
        let ours = RawHandler::load_allocator(raw).malloc.is_some_and(|f| {
            let own: [unsafe extern "C" fn(_, _) -> _; 2] = [malloc, malloc_profiled];
            own.iter().any(|&own| std::ptr::fn_addr_eq(f, own))
        });
        ours.then(|| &*raw.cast::<Handler>())
    }
}

unsafe extern "C" fn malloc_profiled(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: NumPy passes the handler's own context.
    unsafe {
        report_request(handler(ctx), size);
        let block = malloc(ctx, size);
        report_block(block, size)
    }
}

unsafe extern "C" fn calloc_profiled(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe {
        let total = count.saturating_mul(size);
        report_request(handler(ctx), total);
        report_block(calloc(ctx, count, size), total)
    }
}

unsafe extern "C" fn realloc_profiled(ctx: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as above, and the block is one that the front or the handler before gave.
    unsafe {
        if pointer.is_null() {
            return malloc_profiled(ctx, size);
        }
        report_request(handler(ctx), size);
        report_move(pointer as usize, size, || realloc(ctx, pointer, size))
    }
}

unsafe extern "C" fn free_profiled(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: as above.
    unsafe {
        profile::on_free(pointer as usize);
        free(ctx, pointer, size);
    }
}
