//! Sizes in bytes, as users write them: numbers, or text like `"4 GiB"`.

use crate::allocators::arguments::{given, raised};
use crate::python::errors::PyValueError;
use crate::python::values::ToPython;
use firsttouch::size;
use pyo3::prelude::*;

/// The size in bytes that the argument `name` gives, as a number or as text.
pub fn bytes(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    given(value)?.size(name, false).map_err(raised)
}

/// The same for Python.
#[pyfunction]
fn size_argument(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ToPython<usize>> {
    bytes(name, value).map(ToPython)
}

/// The bytes of a size in text, like `"64 KiB"`.
#[pyfunction]
fn parse_size(text: &str) -> PyResult<ToPython<usize>> {
    size::parse(text).map(ToPython).map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(size_argument, module)?)?;
    module.add_function(wrap_pyfunction!(parse_size, module)?)
}
