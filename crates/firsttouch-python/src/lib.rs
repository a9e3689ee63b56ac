//! The Python module of firsttouch: it translates between Python, NumPy and the core, and decides nothing.
//!
//! The rooms, from the bottom; each uses only those before it:
//!
//! | room | |
//! |---|---|
//! | [`python`] | errors and values that survive without memory, the GIL, callbacks of the package, call sites |
//! | [`numpy`] | the C interface, plain dtypes, tracemalloc |
//! | [`allocators`] | allocators as objects, their factories, adaptors and expressions, the pool of the process |
//! | [`custom`] | allocators written in Python |
//! | [`handlers`] | NumPy's memory handlers (NEP 49) |
//! | [`arrays`] | `empty` and `zeros` |
//! | [`scratch`], [`numba`] | scratch buffers and scopes; the same in compiled code |
//! | [`placement`], [`inspection`], [`sharing`] | pages and nodes, what stands behind an array, memory between processes |
//! | [`process`], [`faults`] | statistics, forks; what `guarded` finds |
//! | [`report`], [`tools`] | the report; traces and profiles |

mod allocators;
mod arrays;
mod custom;
mod faults;
mod handlers;
mod inspection;
mod numba;
mod numpy;
mod placement;
mod process;
mod python;
mod report;
mod scratch;
mod sharing;
mod tools;

use crate::numpy::NumPy;
use crate::python::call_sites;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Registers functions of the package by their names; a name that is registered again is replaced. Then looks up once what
/// calls would look up when they first need it.
#[pyfunction]
#[pyo3(name = "register", signature = (**functions))]
fn register_callbacks(py: Python<'_>, functions: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    functions.map_or(Ok(()), |functions| python::add(py, functions))?;
    call_sites::look_up(py);
    scratch::look_up(py)?;
    firsttouch::pages::explicit_page_sizes();
    // If NumPy is not supported, the error occurs when it is needed.
    if NumPy::get(py).is_ok() {
        numpy::plain_dtype(py, None)?;
    }
    Ok(())
}

/// The native half of the package `firsttouch`. It needs no GIL: [`python::gil`] says how values are shared.
#[pymodule(gil_used = false)]
fn _firsttouch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("BACKEND", firsttouch::os::BACKEND)?;
    module.add("SMALL_LIMIT", firsttouch::adaptors::SMALL_LIMIT)?;
    module.add_function(wrap_pyfunction!(register_callbacks, module)?)?;
    python::register(module)?;
    allocators::register(module)?;
    custom::register(module)?;
    handlers::register(module)?;
    arrays::register(module)?;
    scratch::register(module)?;
    numba::register(module)?;
    placement::register(module)?;
    inspection::register(module)?;
    sharing::register(module)?;
    process::register(module)?;
    faults::register(module)?;
    report::register(module)?;
    tools::register(module)?;
    module.delattr("__all__") // the module is private: what is public, the package says
}
