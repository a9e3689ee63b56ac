//! The pools of loaded libraries that return what they keep if Python asks them: Arrow's.
//!
//! That takes the interpreter, for which the purger's thread must not wait. So it queues a call, which the main thread makes
//! between two bytecodes; where that one waits itself, once it goes on.

#![allow(unsafe_code)] // Safety: CPython's queue of pending calls, to which any thread may add.

use firsttouch::heap::malloc_trim::{self, TRIM_AFTER, TRIM_SHARE, WORTH_A_TRIM};
use firsttouch::heap::purger;
use firsttouch::sync::lock::Lock;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::panic::catch_unwind;
use std::ptr::null_mut;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The process in whose queue a call is, as a forked child may have lost its parent's; or [`NEVER`].
static QUEUED_IN: Lock<u32> = Lock::new(0);
/// The interpreter ends: nothing may be queued.
const NEVER: u32 = u32::MAX;

thread_local! {
    /// Of the main thread: the bytes that Arrow had allocated since its start when it was looked at last, those that it had freed
    /// when it was asked last, and when to look again.
    static ARROW: Cell<(usize, usize, Option<Instant>)> = const { Cell::new((0, 0, None)) };
}

/// Lets the purger return, from now on, what these pools and glibc's heaps keep for no use.
pub fn begin(py: Python<'_>) -> PyResult<()> {
    static ENTERED: AtomicBool = AtomicBool::new(false);
    purger::enter_once(&QUEUED_IN, &ENTERED);
    if py.detach(|| malloc_trim::begin(ask)) {
        py.import("atexit")?.call_method1("register", (wrap_pyfunction!(end, py)?,))?;
    }
    Ok(())
}

#[pyfunction]
fn end() {
    *QUEUED_IN.lock() = NEVER;
}

/// Has the pools looked at soon.
fn ask() {
    let (mut queued, this) = (QUEUED_IN.lock(), std::process::id());
    // SAFETY: there is an interpreter, as `end` would wait for the lock.
    if ![this, NEVER].contains(&*queued) && unsafe { ffi::Py_AddPendingCall(Some(look), null_mut()) } == 0 {
        *queued = this;
    }
}

extern "C" fn look(_: *mut c_void) -> c_int {
    let mut queued = QUEUED_IN.lock();
    if *queued != NEVER {
        *queued = 0;
        drop(queued);
        // Without Arrow, or memory, there is nothing to do.
        let _ = catch_unwind(|| Python::attach(|py| drop(look_at_arrow(py))));
    }
    0
}

/// Arrow's pool; an error where Arrow is not loaded.
fn arrow(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a borrowed reference, until the interpreter ends. (To import sys would call the program's `__import__`.)
    let modules = unsafe { Bound::from_borrowed_ptr_or_err(py, ffi::PyImport_GetModuleDict())? };
    modules.get_item("pyarrow")?.call_method0("default_memory_pool")
}

/// Asks it now, if there is one.
pub fn release(py: Python<'_>) {
    let _ = arrow(py).and_then(|pool| pool.call_method0("release_unused"));
}

/// Asks it, if it has freed much since it was asked last, and allocated nothing since the last look.
fn look_at_arrow(py: Python<'_>) -> PyResult<()> {
    let (pool, now) = (arrow(py)?, Instant::now());
    let (allocated_then, freed_then, next) = ARROW.get();
    if next.is_some_and(|next| now < next) {
        return Ok(());
    }
    let bytes = |name| pool.call_method0(name)?.extract::<usize>();
    let allocated = bytes("total_bytes_allocated")?;
    let mut freed = allocated.saturating_sub(bytes("bytes_allocated")?);
    if allocated == allocated_then && freed.saturating_sub(freed_then) >= WORTH_A_TRIM {
        pool.call_method0("release_unused")?;
    } else {
        freed = freed_then;
    }
    ARROW.set((allocated, freed, Some(Instant::now() + TRIM_AFTER.max(now.elapsed() * TRIM_SHARE))));
    Ok(())
}
