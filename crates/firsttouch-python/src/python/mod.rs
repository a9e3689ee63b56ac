//! What the other rooms know of Python: values and errors made without panics where memory is out, the GIL, the lines that
//! call, signals during long work, and functions of the package.

pub mod call_sites;
pub mod gil;
pub mod interrupts;
pub mod values;

use gil::Once;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use values::{Name, PyRuntimeError};

/// Functions of the Python package that this module calls, registered once when the package is imported. The module imports
/// none of them itself: an import in the middle of a call takes a lock, reads files, and runs code at a moment that nobody
/// chose.
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

pub fn begin(py: Python<'_>) -> PyResult<()> {
    interrupts::register();
    gil::look_up(py)
}
