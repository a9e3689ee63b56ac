//! The process: statistics of its allocators, forks, and a system that refuses, for tests.

#![allow(unsafe_code)] // Safety: one call that registers a callback with Python.

use crate::allocators::allocator::{PyAllocator, process_pool};
use crate::handlers::front::installed;
use crate::libraries;
use crate::python::values::PyValueError;
use firsttouch::allocator::Allocator;
use firsttouch::failure;
use firsttouch::heap::{malloc_trim, purger};
use firsttouch::os::{self, Call};
use firsttouch::stats::Stats;
use firsttouch::sync::lock::Lock;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// An allocator, unless it is NumPy's own; by default the one that serves the process, or else its pool.
fn native(allocator: Option<&PyAllocator>) -> Option<Arc<dyn Allocator>> {
    let serving = || installed().unwrap_or_else(|| process_pool().clone());
    allocator.map_or_else(|| Some(serving()), |wrapped| wrapped.native().cloned())
}

/// The statistics of an allocator; by default the one that serves the process.
pub fn stats_of(allocator: Option<&PyAllocator>) -> Stats {
    native(allocator).map_or_else(Stats::default, |native| native.stats())
}

/// The same as a dict.
#[pyfunction]
#[pyo3(signature = (allocator=None))]
pub fn stats<'py>(py: Python<'py>, allocator: Option<&PyAllocator>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let small_limit = native(allocator).map_or(0, |native| native.small_limit() as u64);
    for (name, value) in stats_of(allocator).figures().into_iter().chain([("small_limit", small_limit)]) {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

/// Returns an allocator's idle memory to the operating system; by default that of the one that serves the process.
/// Returns the number of bytes.
#[pyfunction]
#[pyo3(signature = (allocator=None))]
pub fn trim(py: Python<'_>, allocator: Option<&PyAllocator>) -> usize {
    let native = native(allocator);
    py.detach(|| native.map_or(0, |native| native.trim()))
}

/// Returns what other libraries' pools and the C library's heaps keep for no use to the operating system. Returns the number of
/// bytes, but for those pools, which do not tell.
#[pyfunction]
pub fn trim_c_library(py: Python<'_>) -> usize {
    libraries::release(py);
    py.detach(malloc_trim::trim)
}

/// The last request that failed: bytes asked, the limit's name, and the whole reason.
#[pyfunction]
pub fn last_failure() -> Option<(usize, &'static str, String)> {
    let told = failure::last().zip(failure::last_reason());
    told.map(|(error, reason)| (error.asked, error.limit_name(), reason))
}

// Forks. The background purger is joined before, so that Python, which counts threads right after the fork, does not warn,
// and restarted as soon as the function that forked continues. In the child, nothing waits for what a thread of the parent
// was about to end. Until then, no request of the program's own hooks starts it either.

/// The frame that forked, and when to restart the purger at the latest: a fork that raises may never be seen to return. A
/// child may find it locked.
static FORKING_FRAME: Lock<Option<(usize, Instant)>> = Lock::new(None);
/// The program's own hooks may take so long.
const HOOKS: Duration = Duration::from_secs(1);

/// The frame that runs now. It is only compared, as it may be gone.
fn frame() -> usize {
    // SAFETY: the callers are attached to the interpreter.
    unsafe { ffi::PyEval_GetFrame() as usize }
}

/// Restarts the background purger, or asks again where Python still calls the program's own hooks, which have frames of their
/// own: it counts threads after them.
extern "C" fn resume(_: *mut c_void) -> c_int {
    let forking = FORKING_FRAME.try_lock().and_then(|forking| *forking);
    let in_hooks = forking.is_some_and(|(forked, latest)| frame() != forked && Instant::now() < latest);
    // SAFETY: pending calls run attached to the interpreter.
    if !in_hooks || unsafe { ffi::Py_AddPendingCall(Some(resume), null_mut()) } != 0 {
        purger::MAY_RUN.store(true, Relaxed);
        purger::resume();
    }
    0
}

/// Restarts the background purger once the function that forked continues. A pending call runs in the main thread, which
/// tells nothing of a fork in another one.
#[pyfunction]
pub fn resume_later() {
    let forked = os::is_main_thread().then(|| (frame(), Instant::now() + HOOKS));
    let _ = FORKING_FRAME.try_lock().map(|mut forking| *forking = forked);
    // SAFETY: it may be called while attached.
    if unsafe { ffi::Py_AddPendingCall(Some(resume), null_mut()) } != 0 {
        resume(null_mut()); // too many wait
    }
}

/// Holds the purger back until [`resume`].
#[pyfunction]
pub fn before_fork() {
    if os::is_main_thread() {
        purger::MAY_RUN.store(false, Relaxed);
    }
}

/// Registers both with Python as fork hooks, if the platform forks.
pub fn register_at_fork(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let Ok(register_at_fork) = py.import("os")?.getattr("register_at_fork") else { return Ok(()) };
    let at_fork = PyDict::new(py);
    at_fork.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    at_fork.set_item("after_in_parent", wrap_pyfunction!(resume_later, module)?)?;
    at_fork.set_item("after_in_child", wrap_pyfunction!(resume_later, module)?)?;
    register_at_fork.call((), Some(&at_fork)).map(drop)
}

// For tests: a system that refuses, and one with little room.

/// Lets `passing` of the named system calls succeed, then `failing` of them fail. No names end that.
#[pyfunction]
#[pyo3(signature = (names, passing=0, failing=i64::MAX / 2))]
pub fn fail_calls(names: Vec<String>, passing: i64, failing: i64) -> PyResult<()> {
    use Call::*;
    const CALLS: [Call; 12] = [
        Map,
        Unmap,
        Discard,
        AdviseHuge,
        Spawn,
        Resident,
        Protect,
        OpenPages,
        ScanPages,
        ReadPages,
        NodesOfPages,
        OnlyNode,
    ];
    let find = |name: &String| {
        let found = CALLS.into_iter().find(|call| format!("{call:?}").eq_ignore_ascii_case(&name.replace('_', "")));
        found.ok_or_else(|| PyValueError::new_err(format!("no system call {name:?} can be made to fail")))
    };
    os::fail_after(&names.iter().map(find).collect::<PyResult<Vec<_>>>()?, passing, failing);
    Ok(())
}

/// Lets the address space pass for one of 39 bits.
#[pyfunction]
pub fn shrink_address_space() {
    os::shrink_address_space(true);
}
