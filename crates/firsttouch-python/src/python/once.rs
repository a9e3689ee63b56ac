//! Values that are made at their first use, without a wait.

#![allow(unsafe_code)] // Safety: the interpreter's own functions, as their documentation says.

use crate::python::errors::PyRuntimeError;
use pyo3::ffi;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyString, PyTypeMethods, PyWeakrefReference};

/// A value that is made at its first use. Two threads may both make one, and one of the two stays.
///
/// `PyOnceLock`'s own way lets the interpreter go while a value is being made. A child that another thread forks at that
/// moment would wait for ever for the thread that makes it.
pub trait Once<T> {
    /// Returns the value, made by `make` if there is none.
    fn get_or_make(&self, py: Python<'_>, make: impl FnOnce() -> PyResult<T>) -> PyResult<&T>;
}

impl<T> Once<T> for PyOnceLock<T> {
    #[inline]
    fn get_or_make(&self, py: Python<'_>, make: impl FnOnce() -> PyResult<T>) -> PyResult<&T> {
        if let Some(value) = self.get(py) {
            return Ok(value);
        }
        let _ = self.set(py, make()?); // or another thread's stays
        self.get(py).ok_or_else(|| PyRuntimeError::new_err("a value that was just made is not there"))
    }
}

/// Has PyO3 make what its own functions make at their first use, as its way is the other one: names of attributes of types,
/// types that it knows by name, and what it says of arguments that are refused.
pub fn look_up(py: Python<'_>) -> PyResult<()> {
    let kind = py.get_type::<PyInt>();
    kind.name()?;
    kind.module()?;
    kind.qualname()?;
    kind.fully_qualified_name()?;
    kind.call0()?.extract::<i128>()?;
    let _ = (py.get_type::<PanicException>(), py.get_type::<PyWeakrefReference>());
    let _ = wrap_pyfunction!(takes_a_number, py)?.call1(("no number",));
    Ok(())
}

#[pyfunction]
fn takes_a_number(_number: i32) {}

/// A string that is looked up often.
pub struct Interned {
    text: &'static str,
    made: PyOnceLock<Py<PyString>>,
}

impl Interned {
    pub const fn new(text: &'static str) -> Self {
        Self { text, made: PyOnceLock::new() }
    }

    #[inline]
    pub fn get<'py>(&'py self, py: Python<'py>) -> PyResult<&'py Bound<'py, PyString>> {
        Ok(self.made.get_or_make(py, || interned(py, self.text))?.bind(py))
    }
}

/// Like `PyString::intern`, which panics where memory is out.
#[cold]
fn interned(py: Python<'_>, text: &str) -> PyResult<Py<PyString>> {
    // SAFETY: the text has that many bytes; the interpreter is attached, and the reference is new or null, with an error set.
    unsafe {
        let mut made = ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as ffi::Py_ssize_t);
        if !made.is_null() {
            ffi::PyUnicode_InternInPlace(&mut made);
        }
        Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked().unbind())
    }
}
