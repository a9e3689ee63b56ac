//! How handlers free and resize blocks: all find the owner of a block by its address.
//!
//! It may be another allocator: arrays change their data and keep their handlers where f2py swaps them
//! (`intent(inplace)`), and allocators come and go behind the front of the process.

#![allow(unsafe_code)] // Safety: NumPy passes live blocks; law 4 says how their owners are found.

use crate::handlers::allocate::malloc;
use crate::handlers::handler::{Handler, Kind, handler};
use crate::handlers::profile_reports::{reallocate, resize_reported};
use firsttouch::allocator::Request;
use firsttouch::glibc;
use firsttouch::owners::{self, Keeper, Owner};
use firsttouch::vm::address_map;
use firsttouch_trace::profile;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

pub unsafe extern "C" fn free(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: NumPy gives back a live block, and passes the handler's own context.
    unsafe {
        if address_map::is_foreign(pointer as usize) {
            let next = &handler(ctx).next;
            return (next.free)(next.ctx, pointer, size);
        }
        free_owned(ctx, pointer, size)
    }
}

/// For handlers to whose allocator all blocks belong that are nobody else's, and addresses in foreign slots, too.
#[inline(never)]
pub unsafe extern "C" fn free_owned(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: as for `free`; each block goes to who made it.
    unsafe {
        let handler = handler(ctx);
        let Some(address) = NonNull::new(pointer.cast::<u8>()) else { return };
        if handler.kind == Kind::Front {
            glibc::freed(size);
        } else {
            profile::on_free(pointer as usize);
        }
        if handler.scope.as_ref().is_some_and(|scope| scope.try_deallocate(address)) {
            return;
        }
        match owners::find(address) {
            Owner::Segment(owner) => owner.deallocate(address),
            Owner::Keeper(Keeper::Allocator(owner)) => owner.deallocate(address),
            Owner::Keeper(Keeper::Backing(owner)) => {
                let _ = owner.deallocate(address);
            }
            Owner::Gone => {}
            Owner::Nobody if handler.has_rest => handler.allocator().deallocate(address),
            Owner::Nobody => (handler.next.free)(handler.next.ctx, pointer, size),
        }
    }
}

pub unsafe extern "C" fn realloc(ctx: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as for `free`.
    unsafe {
        let handler = handler(ctx);
        let Some(address) = NonNull::new(pointer.cast::<u8>()) else { return malloc(ctx, size) };
        if let Some(scope) = handler.scope.as_ref().filter(|scope| scope.knows(address)) {
            return reallocate(handler, &**scope, address, size);
        }
        match owners::find(address) {
            Owner::Segment(owner) if handler.has_rest => resize_reported(handler, address, size, || {
                let old = owner.usable_size(address);
                let stays = owner.resize_in_place(address, size);
                if stays { pointer } else { move_out(handler, (address, old), size, || owner.deallocate(address)) }
            }),
            Owner::Segment(owner) => reallocate(handler, owner, address, size),
            Owner::Keeper(Keeper::Allocator(owner)) => reallocate(handler, &*owner, address, size),
            Owner::Keeper(Keeper::Backing(owner)) => resize_reported(handler, address, size, || {
                let old = owner.usable_size(address).unwrap_or(0);
                let stays = owner.resize_in_place(address, size);
                if stays {
                    pointer
                } else {
                    move_out(handler, (address, old), size, || {
                        let _ = owner.deallocate(address);
                    })
                }
            }),
            Owner::Gone => match owners::left_behind(address) {
                0 => null_mut(), // how much of it may be read nobody knows
                old => resize_reported(handler, address, size, || move_out(handler, (address, old), size, || ())),
            },
            Owner::Nobody if handler.has_rest => reallocate(handler, &**handler.allocator(), address, size),
            Owner::Nobody => (handler.next.realloc)(handler.next.ctx, pointer, size),
        }
    }
}

/// Moves a block of `old` bytes that came through a handler of somebody else, or whose alignment its maker does not know, or
/// whose maker is gone, to the handler's own allocator.
///
/// # Safety
/// The block lives, has that size, and `free` takes it back.
unsafe fn move_out(
    handler: &Handler,
    (address, old): (NonNull<u8>, usize),
    size: usize,
    free: impl FnOnce(),
) -> *mut c_void {
    let Ok(block) = handler.allocator().allocate(Request::bytes(size)) else { return null_mut() };
    // SAFETY: the block is live, has that size, and `free` takes it back (`realloc` above, for NumPy); the new block
    // overlaps no living one, and the old one goes after the copy.
    unsafe { block.address.copy_from_nonoverlapping(address, old.min(size)) };
    free();
    block.address.as_ptr().cast()
}
