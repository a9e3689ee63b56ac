//! The module's own memory, and exceptions that can be made where it is out (law 7).

#![allow(unsafe_code)] // Safety: calls that return a new reference or null with an error.

use firsttouch::reserve::{WithReserve, inject, is_ready};
use pyo3::exceptions;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyString, PyTuple};
use pyo3::{PyErrArguments, create_exception, ffi};

create_exception!(
    firsttouch,
    UnsupportedError,
    exceptions::PyRuntimeError,
    "Something is not supported by this platform, kernel, NumPy or build.\n\nSee Also\n--------\nfirsttouch.install : Raises it \
     where NumPy's memory handler is not as expected."
);

/// The text of an exception, or nothing where there is no memory for it: PyO3's own would panic, outside of where panics are
/// caught.
struct Message(String);

impl PyErrArguments for Message {
    fn arguments(self, py: Python<'_>) -> Py<PyAny> {
        // SAFETY: the text is as long as said; a new reference, or null with an error.
        let made = unsafe {
            let text = ffi::PyUnicode_FromStringAndSize(self.0.as_ptr().cast(), self.0.len() as isize);
            Bound::from_owned_ptr_or_err(py, text)
        };
        made.map_or_else(|_| py.None(), Bound::unbind)
    }
}

macro_rules! exceptions {
    ($($name:ident),*) => {$(
        #[doc = concat!("Raises `", stringify!($name), "`.")]
        pub enum $name {}

        impl $name {
            /// Such an exception.
            pub fn new_err(message: impl Into<String>) -> PyErr {
                PyErr::new::<exceptions::$name, _>(Message(message.into()))
            }
        }
    )*};
}

exceptions!(PyMemoryError, PyRuntimeError, PyTypeError, PyValueError);

/// `MemoryError`, of which the interpreter keeps some ready.
#[cold]
pub fn out_of_memory(py: Python<'_>) -> PyErr {
    // SAFETY: PyErr_NoMemory may be called while attached, and sets an error.
    unsafe { ffi::PyErr_NoMemory() };
    PyErr::fetch(py)
}

/// What PyO3 panics with where CPython has no memory for a small object, a number or a text.
const NO_OBJECT: &str = "PyObject pointer is null";

/// Has such panics raised as `MemoryError`: PyO3 makes a `PanicException` of each, and its class now makes that of these.
pub fn begin(py: Python<'_>) -> PyResult<()> {
    let make = |given: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<Py<PyAny>> {
        let (py, said) = (given.py(), given.get_item(1)?);
        if said.is_instance_of::<exceptions::PyMemoryError>() {
            return Ok(said.unbind()); // up to Python 3.11 what was made comes again
        }
        if said.cast::<PyString>()?.to_str()? == NO_OBJECT {
            return Ok(out_of_memory(py).into_value(py).into_any());
        }
        let made = py.get_type::<exceptions::PyBaseException>().call_method1("__new__", given)?;
        Ok(made.unbind())
    };
    py.get_type::<PanicException>().setattr("__new__", PyCFunction::new_closure(py, None, None, make)?)
}

/// The native module's own memory: the C library's, and the reserve's where that fails.
#[global_allocator]
static GLOBAL: WithReserve = WithReserve;

/// Raises `MemoryError` where a call could not get what it needs for itself. Stands at the beginning of every call that
/// makes or keeps objects.
#[inline]
pub fn ensure_memory(py: Python<'_>) -> PyResult<()> {
    if is_ready() { Ok(()) } else { Err(out_of_memory(py)) }
}

/// Lets the `n`-th allocation of this module from now on fail, and with `onwards` all that follow; 0 ends that. Returns
/// whether one was still to fail. For tests.
#[pyfunction]
pub fn fail_allocation(n: i64, onwards: bool) -> bool {
    inject(n, onwards)
}
