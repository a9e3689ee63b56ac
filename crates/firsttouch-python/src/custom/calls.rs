//! Calls of methods written in Python: how deep they may nest, the addresses they return, and the exceptions they raise,
//! kept for whoever asked for the memory, as NumPy replaces errors of its handlers by its own.

#![allow(unsafe_code)] // Safety: calls of the interpreter that need the GIL, with which errors are kept and taken.

use crate::python::callbacks::callback;
use crate::python::errors::{PyTypeError, PyValueError};
use pyo3::exceptions::{PyException, PyMemoryError, PyRecursionError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_long, c_void};
use std::ptr::null_mut;

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
            return Err(Self::endless(name));
        }
        RUNNING.set((depth + 1, false));
        Ok(Self)
    }

    /// What to say of an error of this call: NumPy makes one of its own of the refusal of a call within it.
    pub fn explained(&self, py: Python<'_>, name: &str, error: PyErr) -> PyErr {
        if RUNNING.get().1 && error.is_instance_of::<PyMemoryError>(py) { Self::endless(name) } else { error }
    }

    fn endless(name: &str) -> PyErr {
        PyRecursionError::new_err(format!(
            "{name}.allocate() makes arrays on the allocator that it serves, which calls it again, without end"
        ))
    }
}

impl Drop for CallDepth {
    fn drop(&mut self) {
        let (depth, refused) = RUNNING.get();
        RUNNING.set((depth - 1, refused && depth > 1));
    }
}

thread_local! {
    /// What the last failing `allocate` of this thread raised.
    static ERROR: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// Whether Python was asked to raise its like in this thread.
    static ON_ITS_WAY: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the exception of an allocation of this thread for the constructor that requested it.
pub fn keep_error(error: PyErr) {
    let before = ERROR.with(|last| last.borrow_mut().replace(error));
    drop(before); // no borrow lives: its end may run code that comes back here
}

/// The exception that was kept, once: the caller raises it.
pub fn kept_error() -> Option<PyErr> {
    let found = ERROR.with(|last| last.borrow_mut().take());
    if found.is_some() && ON_ITS_WAY.replace(false) {
        // SAFETY: has no preconditions but the GIL, with which errors are kept and taken.
        unsafe { ffi::PyThreadState_SetAsyncExc(ffi::PyThread_get_thread_ident() as c_long, null_mut()) };
    }
    found
}

/// Drops the exception that was kept.
pub fn forget_error() {
    drop(kept_error());
}

extern "C" fn raise_kept(_: *mut c_void) -> c_int {
    let raised = Python::try_attach(|py| {
        let error = kept_error()?;
        if error.is_instance_of::<PyException>(py) {
            keep_error(error); // of a later allocation, whose constructor asks for it
            return None;
        }
        error.restore(py);
        Some(())
    });
    if raised.flatten().is_some() { -1 } else { 0 }
}

/// Has what asks a program to end (`KeyboardInterrupt`, `SystemExit`) come out as itself, whoever asked for memory: NumPy
/// makes an error of its own of every failure, and while it makes it, Python looks for what is pending.
pub fn interrupt(py: Python<'_>, error: &PyErr) {
    if error.is_instance_of::<PyException>(py) {
        return;
    }
    // SAFETY: have no preconditions but the GIL.
    let here = unsafe { ffi::PyThread_get_thread_ident() } as u64;
    let main = || -> PyResult<u64> { callback(py, "main_thread")?.call0()?.getattr("ident")?.extract() };
    // SAFETY: as above; a full queue leaves NumPy's error. Threads but the main one get the exception without its text.
    unsafe {
        if main().is_ok_and(|main| main == here) {
            ffi::Py_AddPendingCall(Some(raise_kept), null_mut());
        } else {
            ffi::PyThreadState_SetAsyncExc(here as c_long, error.get_type(py).as_ptr());
            ON_ITS_WAY.set(true);
        }
    }
}

thread_local! {
    /// What `mark` or `rewind` of custom scratch memory raised where nobody could be told.
    static SCOPE_ERROR: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// An error that the beginning or the end of a scope left behind, once.
pub fn raise_scope_error() -> PyResult<()> {
    SCOPE_ERROR.with(|last| last.borrow_mut().take()).map_or(Ok(()), Err)
}

/// Keeps what the beginning or the end of a scope raised.
pub fn keep_scope_error(error: PyErr) {
    let before = SCOPE_ERROR.with(|last| last.borrow_mut().replace(error));
    drop(before); // its end may run code of its own
}

/// The exception that a custom allocator raised in this thread, once.
#[pyfunction]
fn take_error(py: Python<'_>) -> Option<Py<PyAny>> {
    kept_error().map(|error| error.into_value(py).into_any())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(take_error, module)?)
}
