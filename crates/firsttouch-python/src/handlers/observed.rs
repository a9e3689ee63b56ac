//! What handlers tell profiles (`measure()`), the table of live blocks (`firsttouch why`) and traces: of contexts' handlers
//! what they serve, and of the front, while somebody watches it, also what it leaves to NumPy.

#![allow(unsafe_code)] // Safety: NumPy calls these with the handler's own context and its own live blocks.

use crate::handlers::handler;
use crate::handlers::raw;
use crate::python::call_sites;
use firsttouch_trace::recorder::{self, Request};
use firsttouch_trace::{LARGE_SIZE, live, profile};
use pyo3::ffi;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock, PoisonError};

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
        live::on_alloc(block as usize, size, true, true);
    }
    block
}

/// Tells of a block that is for no array.
pub fn gave_buffer(block: *mut c_void, size: usize) {
    if live::is_open() && !block.is_null() {
        live::on_alloc(block as usize, size, false, buffers_have_lines());
    }
}

/// Whether the line that asks for what is no array may be asked for. Up to CPython 3.11 asking for a frame may collect garbage,
/// which runs any code, while it resizes an object.
fn buffers_have_lines() -> bool {
    static COLLECTS_LATER: OnceLock<bool> = OnceLock::new();
    // SAFETY: a constant of the running Python, which may be read by any thread.
    *COLLECTS_LATER.get_or_init(|| unsafe { ffi::Py_Version } >= 0x030c_0000)
}

/// Tells of a block that is for no array, and is about to be freed.
pub fn freed_buffer(pointer: *mut c_void) {
    live::on_free(pointer as usize);
}

/// Tells of a block that is for no array, and changes its size.
pub fn resize_buffer(old: NonNull<u8>, size: usize, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let listed = live::on_free(old.as_ptr() as usize);
    let moved = resize();
    let (at, new_size) = resized(old.as_ptr() as usize, moved, size);
    match listed {
        Some(listed) => live::on_resize_end(listed, at, new_size, buffers_have_lines()),
        None => gave_buffer(moved, size),
    }
    moved
}

fn moved(old: usize, size: usize, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let before = profile::on_resize_begin(old);
    let listed = live::on_free(old);
    let moved = resize();
    match before {
        before if !moved.is_null() => profile::on_resize_end(before, moved as usize, size),
        Some(living) => profile::on_resize_end(before, old, living.size()),
        None => {}
    }
    match (listed, resized(old, moved, size)) {
        (Some(listed), (at, size)) => live::on_resize_end(listed, at, size, true),
        (None, (at, Some(size))) => live::on_alloc(at, size, true, true),
        (None, _) => {}
    }
    moved
}

/// Where a block is after it was to be resized, and its new size, if that could be had.
fn resized(old: usize, moved: *mut c_void, size: usize) -> (usize, Option<usize>) {
    if moved.is_null() { (old, None) } else { (moved as usize, Some(size)) }
}

// Large blocks that are for no array, while a trace is recorded, whoever serves them. What NumPy asks of CPython for an array
// is recorded as that.

fn is_large(size: usize) -> bool {
    size as u64 >= LARGE_SIZE
}

/// Records a block that was given.
pub fn record_buffer(block: *mut c_void, size: usize, zeroed: bool) -> *mut c_void {
    if !block.is_null() && is_large(size) && !raw::passes() {
        let site = if buffers_have_lines() { line() } else { 0 };
        recorder::on_alloc(block as usize, Request { size, zeroed, is_array: false, site });
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

/// Calls the front, behind which NumPy may ask CPython for what is recorded as an array's.
fn once<T>(call: impl FnOnce() -> T) -> T {
    if recorder::is_recording() { raw::passing(call) } else { call() }
}

// The functions of the front while somebody watches it.

pub unsafe extern "C" fn malloc(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: NumPy passes the handler's own context.
    unsafe { recorded(gave(once(|| handler::malloc(ctx, size)), size), size, false) }
}

pub unsafe extern "C" fn calloc(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe {
        let total = count.saturating_mul(size);
        recorded(gave(once(|| handler::calloc(ctx, count, size)), total), total, true)
    }
}

pub unsafe extern "C" fn realloc(ctx: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as above, and the block is one that the front or the handler behind it gave.
    unsafe {
        if pointer.is_null() {
            return malloc(ctx, size);
        }
        let resize = || moved(pointer as usize, size, || once(|| handler::realloc(ctx, pointer, size)));
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
}

pub unsafe extern "C" fn free(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: as above.
    unsafe {
        if !pointer.is_null() {
            recorder::on_free(pointer as usize, size);
            freed(pointer);
        }
        once(|| handler::free(ctx, pointer, size));
    }
}

fn recorded(address: *mut c_void, size: usize, zeroed: bool) -> *mut c_void {
    if !address.is_null() && is_large(size) && recorder::is_recording() {
        recorder::on_alloc(address as usize, Request { size, zeroed, is_array: true, site: line() });
    }
    address
}

/// The trace's number of a site. Locked by threads that are attached to the interpreter, and stay so meanwhile.
static NUMBERS: Mutex<Option<HashMap<u64, u32>>> = Mutex::new(None);

/// Another trace begins, with numbers of its own.
pub fn forget_lines() {
    *NUMBERS.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// The number of the requesting line; zero where [`call_sites::site`] knows none.
fn line() -> u32 {
    let site = call_sites::site();
    if site == 0 {
        return 0;
    }
    let known = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().get(&site).copied();
    known.unwrap_or_else(|| name(site))
}

#[cold]
fn name(site: u64) -> u32 {
    let Some(found) = call_sites::place(site) else { return 0 };
    let number = recorder::add_site(&found.file, found.line.try_into().unwrap_or(0), &found.library);
    if number != 0 {
        NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(site, number);
    }
    number
}
