//! What handlers report to the profile while a region is open.

#![allow(unsafe_code)] // Safety: passes on that blocks are live, as NumPy promises (`deallocate.rs`).

use crate::handlers::handler::{Handler, Kind};
use firsttouch::allocator::{Allocator, Request};
use firsttouch_trace::profile;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::Ordering::Relaxed;

/// Says who is asked; without an allocator of ours in charge it is NumPy.
pub fn report_request(handler: &Handler, size: usize) {
    let ours = size >= handler.small.load(Relaxed);
    profile::on_request(ours.then(|| handler.allocator()), size);
}

/// For all handlers but the front.
pub fn allocate(handler: &Handler, request: Request) -> *mut c_void {
    profile::on_request(Some(handler.allocator()), request.size());
    report_block(give(handler, request), request.size())
}

/// The same for a block that changes its size.
///
/// # Safety
/// `address` is a live block of `owner`.
pub unsafe fn reallocate(handler: &Handler, owner: &dyn Allocator, address: NonNull<u8>, size: usize) -> *mut c_void {
    // SAFETY: `address` is a live block of `owner` (`deallocate.rs` and `c_library.rs`, for NumPy).
    resize_reported(handler, address, size, || unsafe { resize(owner, address, size) })
}

/// The same for a block that `resize` moves.
pub fn resize_reported(
    handler: &Handler,
    address: NonNull<u8>,
    size: usize,
    resize: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    if !profile::is_open() || handler.kind == Kind::Front {
        return guarded(resize);
    }
    profile::on_request(Some(handler.allocator()), size);
    report_move(address.as_ptr() as usize, size, || guarded(resize))
}

pub fn report_move(old: usize, size: usize, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let before = profile::on_resize_begin(old);
    let moved = resize();
    match before {
        before if !moved.is_null() => profile::on_resize_end(before, moved as usize, size),
        Some(living) => profile::on_resize_end(before, old, living.size()),
        None => {}
    }
    moved
}

pub fn report_block(block: *mut c_void, size: usize) -> *mut c_void {
    if !block.is_null() {
        profile::on_alloc(block as usize, size);
    }
    block
}

/// A block of the handler's own allocator, or null.
#[inline]
pub fn give(handler: &Handler, request: Request) -> *mut c_void {
    guarded(|| handler.allocator().allocate(request).map_or(null_mut(), |block| block.address.as_ptr().cast()))
}

/// # Safety
/// `address` is a live block of `owner`.
unsafe fn resize(owner: &dyn Allocator, address: NonNull<u8>, size: usize) -> *mut c_void {
    guarded(|| {
        // SAFETY: `address` is a live block of `owner` (`reallocate` above).
        let moved = unsafe { owner.reallocate(address, Request::bytes(size)) };
        moved.map_or(null_mut(), |block| block.address.as_ptr().cast())
    })
}

/// No panic crosses into NumPy (law 7); one becomes a failed request.
fn guarded(body: impl FnOnce() -> *mut c_void) -> *mut c_void {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(null_mut())
}
