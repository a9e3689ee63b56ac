//! Scratch buffers inside code compiled by Numba.
//!
//! Compiled code bumps a [`cursor`] itself, and calls the functions of [`entry`] in all other cases. [`runtime`] is Numba's
//! reference counting, and [`failure`] says why a call failed.

pub mod cursor;
pub mod entry;
pub mod failure;
pub mod runtime;

use crate::python::values::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Takes the address of Numba's `NRT_get_api`, and gives the addresses of the functions that compiled code calls.
#[pyfunction]
pub fn numba_setup<'py>(py: Python<'py>, get_api: usize) -> PyResult<Bound<'py, PyDict>> {
    if !runtime::attach(get_api) {
        return Err(PyRuntimeError::new_err("Numba's runtime gave no interface (NRT_get_api)"));
    }
    let symbols = PyDict::new(py);
    for (name, address) in entry::symbols() {
        symbols.set_item(name, address)?;
    }
    Ok(symbols)
}
