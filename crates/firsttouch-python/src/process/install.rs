//! `install` and `uninstall`: which allocators may serve the whole process.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::process_pool::{change_small_limit, process_pool, small_limit};
use crate::allocators::queries;
use crate::custom::allocator::stands_on_python;
use crate::handlers::front;
use crate::python::errors::PyTypeError;
use crate::python::global_allocator::ensure_memory;
use pyo3::prelude::*;

#[pyfunction]
#[pyo3(signature = (allocator=None))]
fn install(py: Python<'_>, allocator: Option<&PyAllocator>) -> PyResult<()> {
    ensure_memory(py)?;
    let chosen = match allocator {
        None => process_pool().clone(),
        Some(wrapped) => wrapped.native().cloned().ok_or_else(|| {
            PyTypeError::new_err(format!(
                "install() cannot take {}: to leave memory to NumPy, call uninstall()",
                wrapped.expression()
            ))
        })?,
    };
    if stands_on_python(&chosen) {
        return Err(PyTypeError::new_err(format!(
            "install() cannot take {}: at its bottom is an allocator written in Python, and memory that serves every thread \
             is given back without the GIL; give C functions to firsttouch.from_functions(), or use use()",
            chosen.expression()
        )));
    }
    if !queries::can_tell(chosen.as_ref()) {
        return Err(PyTypeError::new_err(format!(
            "install() cannot take {}: its blocks lie outside firsttouch's segments, so their owner cannot be found by \
             their address; use it in a block with use(), install tracked() around it, or install pool() or pages()",
            chosen.expression()
        )));
    }
    let small = queries::small_limit(chosen.as_ref(), small_limit());
    front::serve(py, chosen, small)
}

#[pyfunction]
fn uninstall(py: Python<'_>) {
    front::stop_serving(py);
}

#[pyfunction]
fn is_installed() -> bool {
    front::installed().is_some()
}

/// Changes the size below which requests stay with NumPy; for measurements.
#[pyfunction]
fn set_small_limit(py: Python<'_>, nbytes: usize) {
    change_small_limit(nbytes);
    front::change_small(py, nbytes);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(install, module)?)?;
    module.add_function(wrap_pyfunction!(uninstall, module)?)?;
    module.add_function(wrap_pyfunction!(is_installed, module)?)?;
    module.add_function(wrap_pyfunction!(set_small_limit, module)?)
}
