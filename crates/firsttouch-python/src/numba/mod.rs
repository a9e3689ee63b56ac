//! Scratch buffers inside code compiled by Numba.
//!
//! Compiled code bumps a [`cursor`] itself and calls here in all other cases. From the bottom: [`runtime`] is Numba's
//! reference counting, [`chunks`] are memory from a buffer that counts hold, a [`frame`] is what a mark opens, a
//! [`cursor`] is a buffer's state in compiled code, [`calls`] are the functions that compiled code calls, [`entry`] is
//! the way in and out of it, and [`parallel`] gives each thread of a loop a buffer.

pub mod calls;
pub mod chunks;
pub mod cursor;
pub mod entry;
pub mod failure;
pub mod frame;
pub mod parallel;
pub mod runtime;

use crate::python::errors::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Takes the address of Numba's `NRT_get_api`, and gives the addresses of the functions that compiled code calls.
#[pyfunction]
fn numba_setup<'py>(py: Python<'py>, get_api: usize) -> PyResult<Bound<'py, PyDict>> {
    if !runtime::attach(get_api) {
        return Err(PyRuntimeError::new_err("Numba's runtime gave no interface (NRT_get_api)"));
    }
    let symbols = PyDict::new(py);
    for (name, address) in calls::symbols().into_iter().chain(entry::symbols()).chain(parallel::symbols()) {
        symbols.set_item(name, address)?;
    }
    Ok(symbols)
}

/// Returns the error of the last failed call of compiled code in this thread: a text, or the identifiers of two
/// threads.
#[pyfunction]
fn numba_failure() -> failure::FailureText {
    failure::take()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(numba_setup, module)?)?;
    module.add_function(wrap_pyfunction!(numba_failure, module)?)?;
    entry::make_type(module.py());
    module.add_class::<parallel::NumbaBuffers>()
}
