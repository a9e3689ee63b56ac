//! What handlers tell profiles (`measure()`), the table of live blocks (`firsttouch why`) and traces: of contexts' handlers
//! what they serve, and of the front, while somebody watches it, also what it leaves to NumPy.

use crate::handlers::raw;
use crate::python::call_sites;
use firsttouch_trace::trace::{self, Request};
use firsttouch_trace::{live, profile};
use std::ffi::c_void;

/// Tells of a block that was given, for an array or not.
#[inline]
pub fn gave(block: *mut c_void, size: usize, is_array: bool) -> *mut c_void {
    if (profile::is_open() || live::is_open()) && !block.is_null() {
        if is_array {
            profile::on_alloc(block as usize, size);
        }
        live::on_alloc(block as usize, size, is_array);
    }
    block
}

/// Tells of a block that is about to be freed.
#[inline]
pub fn freed(pointer: *mut c_void) {
    profile::on_free(pointer as usize);
    live::on_free(pointer as usize);
}

/// Tells of a block that changes its size.
pub fn resized(old: usize, size: usize, is_array: bool, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if !profile::is_open() && !live::is_open() {
        return resize();
    }
    let counted = if is_array { profile::on_resize_begin(old) } else { None };
    let listed = live::on_free(old);
    let moved = resize();
    live::on_resize_end(listed, old, address(moved), size, is_array);
    if is_array {
        profile::on_resize_end(counted, old, address(moved), size);
    }
    moved
}

/// Where a block is; nothing if there is none.
fn address(block: *mut c_void) -> Option<usize> {
    (!block.is_null()).then_some(block as usize)
}

// Traces have what is large, whoever serves it. What NumPy asks of CPython for an array is traced as that.

/// Traces a block that was given.
#[inline]
pub fn traced(block: *mut c_void, size: usize, zeroed: bool, is_array: bool) -> *mut c_void {
    if size >= trace::LEAST && trace::is_on() && !block.is_null() && (is_array || !raw::passes()) {
        trace::on_alloc(block as usize, Request { size, zeroed, is_array, site: line() });
    }
    block
}

/// Traces that a block, which has at most `used` bytes, is resized.
pub fn traced_resize(
    pointer: *mut c_void,
    used: usize,
    size: usize,
    is_array: bool,
    resize: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    if size.max(used) < trace::LEAST || (!is_array && raw::passes()) {
        return resize();
    }
    let before = trace::on_resize_begin(pointer as usize);
    let moved = resize();
    let site = if before.is_none() && size >= trace::LEAST { line() } else { 0 };
    let request = Request { size, zeroed: false, is_array, site };
    trace::on_resize_end(before, pointer as usize, address(moved), request);
    moved
}

/// The number of the requesting line; zero where [`call_sites::site`] knows none.
fn line() -> usize {
    call_sites::site() as usize
}
