//! Functions of the Python package that this module calls, registered once when the package is imported.
//!
//! The module imports none of them itself: an import in the middle of a call takes a lock, reads files, and runs code at a
//! moment that nobody chose.

use crate::python::errors::PyRuntimeError;
use crate::python::once::Once;
use crate::python::values::Name;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

static CALLBACKS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// The function registered under this name.
pub fn callback<'py>(py: Python<'py>, name: &'static str) -> PyResult<Bound<'py, PyAny>> {
    let all = CALLBACKS.get(py).map(|all| all.bind(py));
    let found = all.map(|all| all.get_item(Name(name))).transpose()?.flatten();
    found.ok_or_else(|| {
        PyRuntimeError::new_err(format!("the package has not registered {name}() with its native module"))
    })
}

/// Registers functions by their names; a name that is registered again is replaced.
pub fn add(py: Python<'_>, functions: &Bound<'_, PyDict>) -> PyResult<()> {
    CALLBACKS.get_or_make(py, || Ok(PyDict::new(py).unbind()))?.bind(py).update(functions.as_mapping())
}
