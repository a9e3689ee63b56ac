//! The native module's own memory: the C library's, and the reserve's where that fails.

use crate::python::errors::out_of_memory;
use crate::python::values::ToPython;
use firsttouch::reserve::{self, WithReserve, inject, is_ready};
use pyo3::prelude::*;

#[global_allocator]
static GLOBAL: WithReserve = WithReserve;

/// Raises `MemoryError` where a call could not get what it needs for itself. Stands at the beginning of every call that
/// makes or keeps objects.
#[inline]
pub fn ensure_memory(py: Python<'_>) -> PyResult<()> {
    if is_ready() { Ok(()) } else { Err(out_of_memory(py)) }
}

/// Lets the `n`-th allocation of this module from now on fail, and with `onwards` all that follow; 0 ends that. Returns
/// whether one was still to fail. For tests.
#[pyfunction]
fn fail_allocation(n: i64, onwards: bool) -> bool {
    inject(n, onwards)
}

/// Bytes of the reserve in use. For tests.
#[pyfunction]
fn reserve_used() -> PyResult<ToPython<usize>> {
    Ok(ToPython(reserve::used()))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fail_allocation, module)?)?;
    module.add_function(wrap_pyfunction!(reserve_used, module)?)
}
