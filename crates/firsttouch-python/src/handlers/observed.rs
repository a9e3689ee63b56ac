//! What handlers tell profiles (`measure()`), the table of live blocks (`firsttouch why`) and traces: of contexts' handlers
//! what they serve, and of the front, while somebody watches it, also what it leaves to NumPy.

use crate::handlers::raw;
use crate::python::call_sites;
use firsttouch::sync::lock::Lock;
use firsttouch_trace::recorder::{self, Request};
use firsttouch_trace::{LARGE_SIZE, live, profile};
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
    match (listed, moved.is_null()) {
        (Some(listed), true) => live::on_resize_end(listed, old, None),
        (Some(listed), false) => live::on_resize_end(listed, moved as usize, Some(size)),
        (None, true) => {}
        (None, false) => live::on_alloc(moved as usize, size, is_array),
    }
    match (counted, moved.is_null()) {
        (Some(living), true) => profile::on_resize_end(counted, old, living.size()),
        (_, false) if is_array => profile::on_resize_end(counted, moved as usize, size),
        _ => {}
    }
    moved
}

// Traces have what is large, whoever serves it. What NumPy asks of CPython for an array is recorded as that.

fn is_large(size: usize) -> bool {
    size as u64 >= LARGE_SIZE
}

/// Calls what is recorded as an array's.
pub fn once<T>(call: impl FnOnce() -> T) -> T {
    if recorder::is_recording() { raw::passing(call) } else { call() }
}

/// Records a block that was given, while a trace is recorded.
#[inline]
pub fn record(block: *mut c_void, size: usize, zeroed: bool, is_array: bool) -> *mut c_void {
    if recorder::is_recording() && is_large(size) && !block.is_null() && (is_array || !raw::passes()) {
        recorder::on_alloc(block as usize, Request { size, zeroed, is_array, site: line() });
    }
    block
}

/// Records that a block, which has at most `used` bytes, is resized.
pub fn record_resize(
    pointer: *mut c_void,
    used: usize,
    size: usize,
    is_array: bool,
    resize: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    let old = pointer as usize;
    if !is_array && raw::passes() {
        return resize();
    }
    if !is_large(size) {
        recorder::on_free(old, used);
        return resize();
    }
    if !is_large(used) {
        return record(resize(), size, false, is_array);
    }
    recorder::on_resize_begin(old);
    let moved = resize();
    let request = Request { size, zeroed: false, is_array, site: if is_array { line() } else { 0 } };
    recorder::on_resize_end(old, (!moved.is_null()).then_some(moved as usize), request);
    moved
}

/// The trace's numbers of sites, by those. Locked by threads that are attached to the interpreter, and stay so meanwhile.
static NUMBERS: Lock<Vec<u32>> = Lock::new(Vec::new());

/// Another trace begins, with numbers of its own.
pub fn forget_lines() {
    NUMBERS.lock().clear();
}

/// The number of the requesting line; zero where [`call_sites::site`] knows none.
fn line() -> u32 {
    let site = call_sites::site() as usize;
    let known = NUMBERS.lock().get(site).copied().unwrap_or(0);
    let found = if known == 0 { call_sites::place(site as u64) } else { None };
    let Some(found) = found else { return known };
    let number = recorder::add_site(found.file, found.line.try_into().unwrap_or(0), &found.library);
    let mut numbers = NUMBERS.lock();
    if numbers.len() <= site {
        numbers.resize(site + 1, 0);
    }
    numbers[site] = number;
    number
}
