//! What Python calls around a fork. The background purger is joined before, so that Python, which counts threads right
//! after the fork, does not warn, and restarted as soon as the interpreter continues. In the child, nothing waits for what a
//! thread of the parent was about to end.

#![allow(unsafe_code)] // Safety: one call that registers a callback with Python.

use crate::scratch::custom;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

extern "C" fn resume(_: *mut c_void) -> c_int {
    firsttouch::heap::purger::resume();
    0
}

/// Restarts the background purger once the interpreter continues.
#[pyfunction]
fn resume_later() {
    // SAFETY: the function may be called at any time with the GIL held; a full queue only means that the purger
    // waits for the next request that needs fresh memory.
    unsafe { ffi::Py_AddPendingCall(Some(resume), null_mut()) };
}

#[pyfunction]
fn after_fork_in_child(py: Python<'_>) {
    custom::forget_ending(py);
    resume_later();
}

/// Trims pools over upstreams that may run Python, before the interpreter takes its locks for a fork.
#[pyfunction]
fn trim_before_fork(py: Python<'_>) {
    py.detach(firsttouch::heap::purger::trim_deferred);
}

/// Registers both with Python as fork hooks, if the platform forks.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let Ok(register_at_fork) = py.import("os")?.getattr("register_at_fork") else { return Ok(()) };
    let at_fork = PyDict::new(py);
    at_fork.set_item("before", wrap_pyfunction!(trim_before_fork, module)?)?;
    at_fork.set_item("after_in_parent", wrap_pyfunction!(resume_later, module)?)?;
    at_fork.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?)?;
    register_at_fork.call((), Some(&at_fork)).map(drop)
}
