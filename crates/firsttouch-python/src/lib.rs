//! The Python face of firsttouch: it translates and decides nothing.

mod adaptors;
mod allocator;
mod bundled;
mod c_library;
mod callbacks;
mod capsules;
mod class;
mod contexts;
mod creation;
mod dtypes;
mod experiments;
mod expressions;
mod factories;
mod faults;
mod forks;
mod guarded_by_gil;
mod handler;
mod install;
mod jit;
mod memory_out;
mod numpy_api;
mod open_scope;
mod own;
mod owners;
mod placement;
mod plain;
mod profile;
mod report;
mod scratch;
mod shared;
mod sight;
mod sites;
mod stacks;
mod trace;
mod traces;

use crate::memory_out::{Given, PyValueError};
use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

create_exception!(
    firsttouch,
    UnsupportedError,
    PyRuntimeError,
    "This NumPy or platform is not as firsttouch needs it."
);

/// Bytes meant by a size as people write it, like `"64 KiB"`.
#[pyfunction]
fn parse_size(text: &str) -> PyResult<Given<usize>> {
    firsttouch::size::parse(text).map(Given).map_err(PyValueError::new_err)
}

/// The native half of the package `firsttouch`.
#[pymodule]
fn _firsttouch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("BACKEND", firsttouch::os::BACKEND)?;
    module.add("UnsupportedError", module.py().get_type::<UnsupportedError>())?;
    module.add_class::<allocator::PyAllocator>()?;
    module.add_function(wrap_pyfunction!(parse_size, module)?)?;
    callbacks::register_functions(module)?;
    factories::register(module)?;
    adaptors::register(module)?;
    bundled::register(module)?;
    stacks::register(module)?;
    creation::register(module)?;
    own::register(module)?;
    install::register(module)?;
    jit::register(module)?;
    contexts::register(module)?;
    experiments::register(module)?;
    expressions::register(module)?;
    faults::register(module)?;
    forks::register(module)?;
    profile::register(module)?;
    scratch::register(module)?;
    placement::register(module)?;
    shared::register(module)?;
    sight::register(module)?;
    trace::register(module)?;
    memory_out::register(module)?;
    report::register(module)
}
