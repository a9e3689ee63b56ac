//! The background purger around a fork. It is joined before, so that Python, which counts threads right after the fork,
//! has no reason to warn, and starts again as soon as the interpreter goes on.

#![allow(unsafe_code)] // Safety: one call that asks Python to call us back.

use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

extern "C" fn resume(_: *mut c_void) -> c_int {
    firsttouch::heap::purger::resume();
    0
}

/// Starts the background purger again once the interpreter goes on.
#[pyfunction]
fn resume_later() {
    // SAFETY: the function may be called at any time with the GIL held; a full queue only means that the purger
    // waits for the next request that needs fresh memory.
    unsafe { ffi::Py_AddPendingCall(Some(resume), null_mut()) };
}

/// Trims pools over upstreams that may run Python, before the interpreter takes its locks for a fork.
#[pyfunction]
fn trim_before_fork(py: Python<'_>) {
    py.detach(firsttouch::heap::purger::trim_deferred);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(trim_before_fork, module)?)?;
    module.add_function(wrap_pyfunction!(resume_later, module)?)
}
