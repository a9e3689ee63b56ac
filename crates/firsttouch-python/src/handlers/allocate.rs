//! How handlers allocate. Small requests go straight to the next handler, uncounted.

#![allow(unsafe_code)] // Safety: NumPy passes each function its handler's own context.

use crate::handlers::handler::{Handler, Kind, handler};
use crate::handlers::profile_reports::{self, give};
use firsttouch::allocator::Request;
use firsttouch::glibc;
use firsttouch_trace::profile;
use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;

pub unsafe extern "C" fn malloc(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: NumPy passes the handler's own context.
    unsafe {
        let handler = handler(ctx);
        if size < handler.small.load(Relaxed) {
            return (handler.next.malloc)(handler.next.ctx, size);
        }
        serve(ctx, size)
    }
}

pub unsafe extern "C" fn calloc(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
    unsafe {
        let handler = handler(ctx);
        if size == 1 && count < handler.small.load(Relaxed) {
            return (handler.next.calloc)(handler.next.ctx, count, size); // NumPy always asks for so many single bytes
        }
        serve_zeroed(ctx, count, size)
    }
}

// The slow halves are `extern "C"` too, so that the fast ones can jump to them and need no frame.

#[inline(never)]
unsafe extern "C" fn serve(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
    allocate(unsafe { handler(ctx) }, Request::bytes(size))
}

#[inline(never)]
unsafe extern "C" fn serve_zeroed(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
    unsafe {
        let handler = handler(ctx);
        let total = count.saturating_mul(size); // so much no allocator has
        if total < handler.small.load(Relaxed) {
            return (handler.next.calloc)(handler.next.ctx, count, size);
        }
        allocate(handler, Request::zeroed(total))
    }
}

fn allocate(handler: &Handler, request: Request) -> *mut c_void {
    if handler.kind == Kind::Front {
        // SAFETY: nobody uses the block, if there is one.
        glibc::follow(|size| unsafe { libc::free(std::hint::black_box(libc::malloc(size))) });
        glibc::allocated(request.size());
    }
    if profile::is_open() && handler.kind != Kind::Front {
        return profile_reports::allocate(handler, request); // the front tells of its blocks itself
    }
    give(handler, request)
}
