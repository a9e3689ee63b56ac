//! The recorder's handler: it passes everything on to whoever stood behind NumPy's capsule, and tells of it.

#![allow(unsafe_code)] // Safety: passes NumPy's own calls on, to handlers that live for ever.

use super::lines;
use crate::handler::{NUMPY_NAME, names};
use crate::install::{behind, behind_now};
use crate::numpy_api::{NumPy, RawAllocator, RawHandler};
use firsttouch_trace::recorder::{self, LARGE_SIZE};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Release};

/// NumPy sees only `raw`.
#[repr(C)]
struct Front {
    raw: RawHandler,
    /// Who serves; checked to have all functions.
    next: AtomicPtr<RawHandler>,
}

// SAFETY: `raw` does not change, and `next` is atomic.
unsafe impl Sync for Front {}
// SAFETY: as above.
unsafe impl Send for Front {}

static FRONT: OnceLock<&'static Front> = OnceLock::new();

/// Puts the recorder's handler before NumPy's default one, once.
pub fn stand(py: Python<'_>) -> PyResult<()> {
    behind(py)?; // NumPy's own is noted first
    if FRONT.get().is_some() {
        return Ok(());
    }
    let (next, _) = behind_now(py)?;
    let front: &'static Front = Box::leak(Box::new(Front {
        raw: RawHandler { name: names(NUMPY_NAME), version: 1, allocator: RawAllocator::NONE },
        next: AtomicPtr::new(next.cast_mut()),
    }));
    let ctx = std::ptr::from_ref(front).cast_mut().cast();
    let allocator =
        RawAllocator { ctx, malloc: Some(malloc), calloc: Some(calloc), realloc: Some(realloc), free: Some(free) };
    let raw = (&raw const front.raw).cast_mut();
    // SAFETY: nobody else knows the handler yet. NumPy keeps what the capsule leads to, which is never dropped.
    let done = unsafe {
        (&raw mut (*raw).allocator).write(allocator);
        ffi::PyCapsule_SetPointer(NumPy::get(py)?.default_capsule(py).as_ptr(), raw.cast())
    };
    if done != 0 {
        return Err(PyErr::fetch(py));
    }
    let _ = FRONT.set(front);
    Ok(())
}

/// Whether a handler that was just made for the process stands behind the recorder's now, who stays in front.
pub fn insert_behind(next: *const RawHandler) -> bool {
    let front = FRONT.get();
    if let Some(front) = front {
        front.next.store(next.cast_mut(), Release);
    }
    front.is_some()
}

/// Who serves behind the recorder, if that is what `raw` is.
pub fn serving(raw: *const RawHandler) -> Option<*const RawHandler> {
    let front = FRONT.get().filter(|front| std::ptr::eq(&front.raw, raw))?;
    Some(front.next.load(Acquire))
}

/// The functions behind the recorder.
///
/// # Safety
/// `ctx` is the recorder's.
#[inline(always)]
unsafe fn next<'a>(ctx: *mut c_void) -> &'a RawAllocator {
    // SAFETY: the caller's promise; handlers behind the front are never dropped.
    unsafe { &(*(*ctx.cast::<Front>()).next.load(Acquire)).allocator }
}

fn gave(address: *mut c_void, size: usize, zeroed: bool) -> *mut c_void {
    if !address.is_null() && recorder::is_recording() {
        if size < LARGE_SIZE {
            recorder::on_alloc(address as usize, size, zeroed);
        } else {
            recorder::on_alloc_large(address as usize, size, zeroed, lines::line());
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
