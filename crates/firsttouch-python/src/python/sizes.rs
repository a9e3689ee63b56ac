//! Sizes in bytes, as users write them: numbers, or text like `"4 GiB"`.

use crate::python::errors::{PyTypeError, PyValueError};
use crate::python::values::{Name, ToPython};
use firsttouch::size;
use pyo3::prelude::*;
use pyo3::types::PyBool;

/// The size in bytes that the argument `name` gives, as a number or as text.
pub fn bytes(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Ok(text) = value.extract::<String>() {
        return size::parse(&text).map_err(|message| PyValueError::new_err(format!("{name}: {message}")));
    }
    let wrong_type = || {
        let kind = value.get_type().to_string();
        PyTypeError::new_err(format!("{name} is {kind}: give a number of bytes, text like \"4 GiB\", or None"))
    };
    if value.is_instance_of::<PyBool>() {
        return Err(wrong_type());
    }
    let number = value.call_method0(Name("__index__")).map_err(|_| wrong_type())?;
    number.extract::<usize>().map_err(|_| {
        PyValueError::new_err(format!(
            "{name}={number} is not a number of bytes: give 0 or more, or text like \"4 GiB\""
        ))
    })
}

/// The bytes of a size in text, like `"64 KiB"`.
#[pyfunction]
fn parse_size(text: &str) -> PyResult<ToPython<usize>> {
    size::parse(text).map(ToPython).map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(parse_size, module)?)
}
