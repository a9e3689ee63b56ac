//! Handlers while somebody measures: the gauge is told of every block.
//!
//! The front of the process has functions of its own for that time, which also tell of what it leaves to NumPy; otherwise
//! the plain ones stand there, which look for nobody. All others ask whether anybody measures.

use super::back::{free, realloc};
use super::{Handler, Kind, calloc, give, guarded, handler, malloc, resize};
use firsttouch::allocator::{Allocator, Request};
use firsttouch_trace::profile;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

/// Says who is asked; without an allocator of ours in charge it is NumPy.
fn asking(handler: &Handler, size: usize) {
    let ours = size >= handler.small.load(Relaxed);
    profile::on_request(ours.then(|| handler.allocator()), size);
}

pub(super) unsafe extern "C" fn malloc_watched(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: NumPy passes the handler's own context.
    unsafe {
        asking(handler(ctx), size);
        let block = malloc(ctx, size);
        told(block, size)
    }
}

pub(super) unsafe extern "C" fn calloc_watched(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe {
        let total = count.saturating_mul(size);
        asking(handler(ctx), total);
        told(calloc(ctx, count, size), total)
    }
}

/// For all handlers but the front.
pub(super) fn allocate(handler: &Handler, request: Request) -> *mut c_void {
    profile::on_request(Some(handler.allocator()), request.size());
    told(give(handler, request), request.size())
}

/// The same for a block that changes its size.
///
/// # Safety
/// `address` is a living block of `owner`.
pub(super) unsafe fn reallocate(
    handler: &Handler,
    owner: &dyn Allocator,
    address: NonNull<u8>,
    size: usize,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    told_of(handler, address, size, || unsafe { resize(owner, address, size) })
}

/// The same for a block that `resize` moves.
pub(super) fn told_of(
    handler: &Handler,
    address: NonNull<u8>,
    size: usize,
    resize: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    if !profile::is_open() || handler.kind == Kind::Front {
        return guarded(resize);
    }
    profile::on_request(Some(handler.allocator()), size);
    moving(address.as_ptr() as usize, size, || guarded(resize))
}

fn moving(old: usize, size: usize, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let before = profile::on_resize_begin(old);
    let moved = resize();
    match before {
        before if !moved.is_null() => profile::on_resize_end(before, moved as usize, size),
        Some(living) => profile::on_resize_end(before, old, living.size()),
        None => {}
    }
    moved
}

fn told(block: *mut c_void, size: usize) -> *mut c_void {
    if !block.is_null() {
        profile::on_alloc(block as usize, size);
    }
    block
}

pub(super) unsafe extern "C" fn realloc_watched(ctx: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as above, and the block is one that the front or the handler before gave.
    unsafe {
        if pointer.is_null() {
            return malloc_watched(ctx, size);
        }
        asking(handler(ctx), size);
        moving(pointer as usize, size, || realloc(ctx, pointer, size))
    }
}

pub(super) unsafe extern "C" fn free_watched(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: as above.
    unsafe {
        profile::on_free(pointer as usize);
        free(ctx, pointer, size);
    }
}
