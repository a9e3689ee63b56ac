//! The recorder's handler: it passes every call on to the handler behind it, and records it.

#![allow(unsafe_code)] // Safety: passes NumPy's own calls on, to handlers that are never dropped.

use crate::handlers::numpy_default::{
    NUMPY_NAME, behind, behind_now, capsule_lock, names, put_in_capsule, set_recorder,
};
use crate::numpy::abi::{RawAllocator, RawHandler};
use crate::python::call_sites;
use firsttouch_trace::recorder::{self, LARGE_SIZE};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire};
use std::sync::{Mutex, OnceLock, PoisonError};

/// NumPy sees only `raw`.
#[repr(C)]
struct RecorderHandler {
    raw: RawHandler,
    /// Who serves; checked to have all functions.
    next: AtomicPtr<RawHandler>,
}

// SAFETY: `raw` does not change, and `next` is atomic.
unsafe impl Sync for RecorderHandler {}
// SAFETY: as above.
unsafe impl Send for RecorderHandler {}

static FRONT: OnceLock<&'static RecorderHandler> = OnceLock::new();

/// Puts the recorder's handler before NumPy's default one, once.
pub fn stand(py: Python<'_>) -> PyResult<()> {
    behind(py)?; // NumPy's own is noted first
    let _lock = capsule_lock(py);
    if FRONT.get().is_some() {
        return Ok(());
    }
    let (next, _) = behind_now(py)?;
    let front: &'static RecorderHandler = Box::leak(Box::new(RecorderHandler {
        raw: RawHandler { name: names(NUMPY_NAME), version: 1, allocator: RawAllocator::NONE },
        next: AtomicPtr::new(next.cast_mut()),
    }));
    let ctx = std::ptr::from_ref(front).cast_mut().cast();
    let allocator =
        RawAllocator { ctx, malloc: Some(malloc), calloc: Some(calloc), realloc: Some(realloc), free: Some(free) };
    let raw = (&raw const front.raw).cast_mut();
    // SAFETY: the handler is not shared yet and never dropped, and each block is freed through the handler behind it,
    // which finds its owner.
    unsafe {
        (&raw mut (*raw).allocator).write(allocator);
        put_in_capsule(py, raw)?;
    }
    set_recorder(raw, &front.next);
    let _ = FRONT.set(front);
    Ok(())
}

/// The functions behind the recorder.
///
/// # Safety
/// `ctx` is the recorder's.
#[inline(always)]
unsafe fn next<'a>(ctx: *mut c_void) -> &'a RawAllocator {
    // SAFETY: `ctx` is the recorder's: NumPy passes what the functions below were given with; handlers behind the front
    // are never dropped.
    unsafe { &(*(*ctx.cast::<RecorderHandler>()).next.load(Acquire)).allocator }
}

fn gave(address: *mut c_void, size: usize, zeroed: bool) -> *mut c_void {
    if !address.is_null() && recorder::is_recording() {
        if size < LARGE_SIZE {
            recorder::on_alloc(address as usize, size, zeroed);
        } else {
            recorder::on_alloc_large(address as usize, size, zeroed, line());
        }
    }
    address
}

unsafe extern "C" fn malloc(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: NumPy passes the handler's own context; all functions were checked to be there.
    unsafe {
        let next = next(ctx);
        gave((next.malloc.unwrap_unchecked())(next.ctx, size), size, false)
    }
}

unsafe extern "C" fn calloc(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
    unsafe {
        let next = next(ctx);
        gave((next.calloc.unwrap_unchecked())(next.ctx, count, size), count.saturating_mul(size), true)
    }
}

unsafe extern "C" fn realloc(ctx: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
    unsafe {
        let next = next(ctx);
        let resize = next.realloc.unwrap_unchecked();
        if pointer.is_null() || !recorder::is_recording() {
            return gave(resize(next.ctx, pointer, size), size, false);
        }
        recorder::on_resize_begin(pointer as usize);
        let moved = resize(next.ctx, pointer, size);
        recorder::on_resize_end((!moved.is_null()).then_some(moved as usize), size);
        moved
    }
}

unsafe extern "C" fn free(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: as for `malloc`.
    unsafe {
        if !pointer.is_null() {
            recorder::on_free(pointer as usize, size);
        }
        let next = next(ctx);
        (next.free.unwrap_unchecked())(next.ctx, pointer, size);
    }
}

/// The trace's number of a site. Locked by threads that are attached to the interpreter, and stay so meanwhile.
static NUMBERS: Mutex<Option<HashMap<u64, u32>>> = Mutex::new(None);

/// Another trace begins, with numbers of its own.
pub fn forget_lines() {
    *NUMBERS.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// The number of the requesting line; zero if no Python code runs in this thread.
fn line() -> u32 {
    Python::try_attach(|py| {
        let site = call_sites::site();
        if site == 0 {
            return 0;
        }
        let known = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().get(&site).copied();
        known.unwrap_or_else(|| name(py, site))
    })
    .unwrap_or(0)
}

#[cold]
fn name(py: Python<'_>, site: u64) -> u32 {
    let Some((file, line)) = call_sites::place(py, site) else { return 0 };
    let number = recorder::add_site(&file, line.try_into().unwrap_or(0));
    if number != 0 {
        NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(site, number);
    }
    number
}
