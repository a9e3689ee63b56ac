//! The functions of Python that this module calls, given once when the package is imported. It imports none itself: an
//! import in the middle of a call would be a lock, a file, and code that runs at a moment that nobody chose.

use crate::dtypes;
use crate::memory_out::{Name, PyRuntimeError};
use crate::numpy_api::NumPy;
use crate::scratch;
use crate::sites;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

static GIVEN: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// What was given under this name.
pub fn given<'py>(py: Python<'py>, name: &'static str) -> PyResult<Bound<'py, PyAny>> {
    let all = GIVEN.get(py).map(|all| all.bind(py));
    let found = all.map(|all| all.get_item(Name(name))).transpose()?.flatten();
    found.ok_or_else(|| PyRuntimeError::new_err(format!("the package has not given {name}() to its native module yet")))
}

/// Takes functions by their names; what is given again replaces what was there. Then looks up once what calls would look
/// up when they first need it.
#[pyfunction]
#[pyo3(signature = (**functions))]
fn register(py: Python<'_>, functions: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let all = GIVEN.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    if let Some(functions) = functions {
        all.update(functions.as_mapping())?;
    }
    sites::look_up(py);
    scratch::look_up(py)?;
    // Where NumPy is not as it is expected, whoever needs it says so.
    if NumPy::get(py).is_ok() {
        dtypes::known(py, None)?;
    }
    Ok(())
}

pub fn register_functions(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(register, module)?)
}
