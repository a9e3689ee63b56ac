//! What happens where memory is out: a caller sees `MemoryError`, whatever asked for memory, and the process goes on.

mod errors;
mod given;
mod global;
mod inject;
mod reserve;

pub use errors::{PyMemoryError, PyOSError, PyRuntimeError, PyTypeError, PyValueError, out_of_memory};
pub use given::{Dict, Given, Name, arguments, bytes, list};

use pyo3::prelude::*;

/// `MemoryError` where a call could not get what it needs for itself. Stands at the door of what makes or keeps objects.
#[inline]
pub fn check(py: Python<'_>) -> PyResult<()> {
    if global::is_ready() { Ok(()) } else { Err(errors::out_of_memory(py)) }
}

/// From now on the `n`-th request for memory of this module fails, and with `onwards` all that follow; 0 ends that.
/// Whether one was still to fail. For tests.
#[pyfunction]
fn fail_allocation(n: i64, onwards: bool) -> bool {
    inject::set(n, onwards)
}

/// Bytes of the reserve in use. For tests.
#[pyfunction]
fn reserve_used() -> PyResult<Given<usize>> {
    Ok(Given(reserve::used()))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fail_allocation, module)?)?;
    module.add_function(wrap_pyfunction!(reserve_used, module)?)
}
