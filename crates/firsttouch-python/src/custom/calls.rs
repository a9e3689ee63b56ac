//! Calls of methods written in Python: how deep they may nest, and the addresses they return.

use crate::python::errors::{PyTypeError, PyValueError};
use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};
use std::cell::Cell;

/// The address that a method written in Python returned; an error where that is none, which `call` names.
pub fn as_address(given: &Bound<'_, PyAny>, call: &impl Fn() -> String) -> PyResult<usize> {
    if !given.is_instance_of::<PyInt>() || given.is_instance_of::<PyBool>() {
        let kind = given.get_type().name()?;
        return Err(PyTypeError::new_err(format!("{} returned {kind}, not an address (an int)", call())));
    }
    given.extract().map_err(|_| PyValueError::new_err(format!("{} returned {given}, which is not an address", call())))
}

/// Calls of `allocate` that may run within each other in one thread: a custom allocator that stands on others
/// needs a few.
const MAX_DEPTH: usize = 32;

thread_local! {
    /// How many calls run, and whether one was refused: then those around fail too, instead of trying again each.
    static RUNNING: Cell<(usize, bool)> = const { Cell::new((0, false)) };
}

/// A call of Python's `allocate` that runs in this thread.
pub struct CallDepth;

impl CallDepth {
    /// A `RecursionError` where too many run already: native frames lie between them, and Python, which counts its own,
    /// would notice after the end of the stack.
    pub fn enter(name: &str) -> PyResult<Self> {
        let (depth, refused) = RUNNING.get();
        if depth >= MAX_DEPTH || (refused && depth > 0) {
            RUNNING.set((depth, true));
            return Err(PyRecursionError::new_err(format!(
                "{name}.allocate() makes arrays on the allocator that it serves, which calls it again, without end"
            )));
        }
        RUNNING.set((depth + 1, false));
        Ok(Self)
    }
}

impl Drop for CallDepth {
    fn drop(&mut self) {
        let (depth, refused) = RUNNING.get();
        RUNNING.set((depth - 1, refused && depth > 1));
    }
}
