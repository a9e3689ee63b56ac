//! Why a call of compiled code failed. Such code can raise exceptions, but only of a constant class without arguments: that
//! class gives what stands here, in the same thread.

use crate::python::values::{PyMemoryError, PyRuntimeError, PyValueError};
use firsttouch::allocator::AllocError;
use firsttouch::failure;
use pyo3::prelude::*;
use std::cell::RefCell;

/// A failure, and its text.
#[derive(Clone)]
pub enum Failure {
    /// There is no memory.
    Memory(String),
    /// A shape or a mark is not valid.
    Value(String),
}

impl Failure {
    pub fn memory(text: impl Into<String>) -> Self {
        Self::Memory(text.into())
    }

    pub fn value(text: impl Into<String>) -> Self {
        Self::Value(text.into())
    }

    pub fn error(self) -> PyErr {
        match self {
            Self::Memory(text) => PyMemoryError::new_err(text),
            Self::Value(text) => PyValueError::new_err(text),
        }
    }

    /// Keeps it for the exception of this thread.
    pub fn put(self) {
        LAST.set(Some(self));
    }
}

impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Self {
        failure::pass_on(error); // with the reason that an upstream in Python gave
        Self::Memory(failure::last_reason().unwrap_or_else(|| error.to_string()))
    }
}

thread_local! {
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

/// The exception for the last failure of compiled code in this thread.
#[pyfunction]
pub fn numba_failure(py: Python<'_>) -> Py<PyAny> {
    let failure = LAST.with_borrow(Clone::clone);
    let error = failure.map_or_else(|| PyRuntimeError::new_err("compiled code did not fail here"), Failure::error);
    error.into_value(py).into_any()
}
