//! Scratch buffers inside code that Numba compiles.
//!
//! Compiled code bumps a [`cursor`] itself and calls here where that does not do. From the bottom: [`runtime`] is Numba's
//! counting of references, [`chunk`] is memory from a buffer, [`hold`] ties the two, a [`frame`] is what a mark opens, a
//! [`cursor`] is a buffer's state in compiled code, [`calls`] are the functions that compiled code calls, [`entry`] is
//! the way in and out of it, for [`arguments`] and for a [`team`] of them.

mod allocate;
mod arguments;
mod calls;
mod chunk;
mod cursor;
mod entry;
mod failure;
mod frame;
mod hold;
mod rewind;
mod runtime;
mod team;

use crate::memory_out::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Takes the address of Numba's `NRT_get_api`, and gives the addresses of the functions that compiled code calls.
#[pyfunction]
fn jit_setup<'py>(py: Python<'py>, get_api: usize) -> PyResult<Bound<'py, PyDict>> {
    if !runtime::attach(get_api) {
        return Err(PyRuntimeError::new_err("Numba's runtime gave no interface (NRT_get_api)"));
    }
    let symbols = PyDict::new(py);
    for (name, address) in calls::symbols().into_iter().chain(arguments::symbols()).chain(team::symbols()) {
        symbols.set_item(name, address)?;
    }
    Ok(symbols)
}

/// What the last failing call of compiled code in this thread has to say: a text, or the numbers of two threads.
#[pyfunction]
fn jit_failure() -> failure::Text {
    failure::take()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(jit_setup, module)?)?;
    module.add_function(wrap_pyfunction!(jit_failure, module)?)?;
    module.add_class::<team::JitBuffers>()
}
