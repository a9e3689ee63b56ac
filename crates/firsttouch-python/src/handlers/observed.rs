//! What handlers tell profiles (`measure()`), the table of live blocks (`firsttouch why`) and traces: of contexts' handlers
//! what they serve, and of the front, while somebody watches it, also what it leaves to NumPy.

use crate::handlers::raw;
use crate::python::call_sites;
use firsttouch::allocator;
use firsttouch::sync::lock::Lock;
use firsttouch_trace::recorder::{self, Request};
use firsttouch_trace::{LARGE_SIZE, live, profile};
use std::ffi::c_void;
use std::ptr::NonNull;

/// Tells profiles of a block that a context's handler gives.
pub fn allocate(size: usize, give: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if is_watched() { gave(give(), size) } else { give() }
}

/// Tells profiles of a block that changes its size through a context's handler.
pub fn resize(address: NonNull<u8>, size: usize, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if is_watched() { moved(address.as_ptr() as usize, size, resize) } else { resize() }
}

/// Tells of a block that is about to be freed.
#[inline]
pub fn freed(pointer: *mut c_void) {
    profile::on_free(pointer as usize);
    live::on_free(pointer as usize);
}

fn is_watched() -> bool {
    profile::is_open() || live::is_open()
}

fn gave(block: *mut c_void, size: usize) -> *mut c_void {
    if !block.is_null() {
        profile::on_alloc(block as usize, size);
        live::on_alloc(block as usize, size, true);
    }
    block
}

/// Tells of a block that is for no array.
pub fn gave_buffer(block: *mut c_void, size: usize) {
    if !block.is_null() {
        live::on_alloc(block as usize, size, false);
    }
}

/// Tells of a block that is for no array, and is about to be freed.
pub fn freed_buffer(pointer: *mut c_void) {
    live::on_free(pointer as usize);
}

/// Tells of a block that is for no array, and changes its size.
pub fn resize_buffer(old: NonNull<u8>, size: usize, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
    listed_anew(old.as_ptr() as usize, size, false, resize)
}

fn listed_anew(old: usize, size: usize, is_array: bool, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let listed = live::on_free(old);
    let moved = resize();
    match listed {
        Some(listed) if moved.is_null() => live::on_resize_end(listed, old, None),
        Some(listed) => live::on_resize_end(listed, moved as usize, Some(size)),
        None if moved.is_null() => {}
        None => live::on_alloc(moved as usize, size, is_array),
    }
    moved
}

fn moved(old: usize, size: usize, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let before = profile::on_resize_begin(old);
    let moved = listed_anew(old, size, true, resize);
    match before {
        before if !moved.is_null() => profile::on_resize_end(before, moved as usize, size),
        Some(living) => profile::on_resize_end(before, old, living.size()),
        None => {}
    }
    moved
}

// Large blocks that are for no array, while a trace is recorded, whoever serves them. What NumPy asks of CPython for an array
// is recorded as that.

fn is_large(size: usize) -> bool {
    size as u64 >= LARGE_SIZE
}

/// Records a block that was given.
pub fn record_buffer(block: *mut c_void, size: usize, zeroed: bool) -> *mut c_void {
    if !block.is_null() && is_large(size) && !raw::passes() {
        recorder::on_alloc(block as usize, Request { size, zeroed, is_array: false, site: line() });
    }
    block
}

/// Records that a block, which has at most `used` bytes, is about to be freed.
pub fn record_free(pointer: *mut c_void, used: usize) {
    if is_large(used) && !raw::passes() {
        recorder::on_free(pointer as usize, used);
    }
}

/// Records that such a block is resized.
pub fn record_resize(
    pointer: *mut c_void,
    used: usize,
    size: usize,
    resize: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    if !is_large(size) {
        record_free(pointer, used);
        return resize();
    }
    if !is_large(used) || raw::passes() {
        return record_buffer(resize(), size, false);
    }
    recorder::on_resize_begin(pointer as usize);
    let moved = resize();
    let request = Request { size, zeroed: false, is_array: false, site: 0 };
    recorder::on_resize_end(pointer as usize, (!moved.is_null()).then_some(moved as usize), request);
    moved
}

// The front, while somebody watches it.

/// Calls the front, behind which NumPy may ask CPython for what is recorded as an array's.
fn once<T>(call: impl FnOnce() -> T) -> T {
    if recorder::is_recording() { raw::passing(call) } else { call() }
}

/// Tells of a request.
pub fn requested(request: allocator::Request, take: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let (size, zeroed) = (request.size(), request.is_zeroed());
    let block = gave(once(take), size);
    if !block.is_null() && is_large(size) && recorder::is_recording() {
        recorder::on_alloc(block as usize, Request { size, zeroed, is_array: true, site: line() });
    }
    block
}

/// Tells of a block that is resized.
pub fn resized(pointer: *mut c_void, size: usize, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let resize = || moved(pointer as usize, size, || once(resize));
    if !recorder::is_recording() {
        return resize();
    }
    recorder::on_resize_begin(pointer as usize);
    let moved = resize();
    let site = if is_large(size) { line() } else { 0 };
    let request = Request { size, zeroed: false, is_array: true, site };
    recorder::on_resize_end(pointer as usize, (!moved.is_null()).then_some(moved as usize), request);
    moved
}

/// Tells of a block that is freed.
pub fn released(pointer: *mut c_void, size: usize, free: impl FnOnce()) {
    recorder::on_free(pointer as usize, size);
    freed(pointer);
    once(free);
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
    let number = recorder::add_site(&found.file, found.line.try_into().unwrap_or(0), &found.library);
    let mut numbers = NUMBERS.lock();
    if numbers.len() <= site {
        numbers.resize(site + 1, 0);
    }
    numbers[site] = number;
    number
}
