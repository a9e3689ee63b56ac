//! Scratch memory as Python knows it.
//!
//! From the bottom: a [`buffer`] may stand on [`storage`] of another object's; [`default_buffers`] belong to a thread or a
//! task; a [`scope`] lets NumPy use a buffer; the [`decorator`] opens scopes, and copies what a decorated function returns.

pub mod buffer;
pub mod decorator;
pub mod default_buffers;
pub mod scope;
pub mod storage;

use crate::python::values::PyTypeError;
use firsttouch::expression::did_you_mean;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Refuses arguments whose names a function does not know, in the words of allocators' functions.
fn refuse(function: &str, others: Option<&Bound<'_, PyDict>>, takes: &'static [&'static str]) -> PyResult<()> {
    let Some(first) = others.and_then(|others| others.keys().iter().next()) else { return Ok(()) };
    let (name, takes_all) = (first.to_string(), takes.join(", "));
    let near = did_you_mean(&name, takes.iter().copied());
    Err(PyTypeError::new_err(format!("{function}() takes no {name}{near}: it takes {takes_all}")))
}

/// Looks up what the first calls would need.
pub fn look_up(py: Python<'_>) -> PyResult<()> {
    default_buffers::look_up(py)?;
    decorator::look_up(py)
}
