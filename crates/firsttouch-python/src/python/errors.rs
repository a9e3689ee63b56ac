//! Python's exceptions, raised even where memory is out: PyO3's own panic where there is none for the message, outside of
//! where a panic would be caught.

#![allow(unsafe_code)] // Safety: calls that return a new reference or null.

use pyo3::create_exception;
use pyo3::exceptions;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::{PyErrArguments, PyTypeInfo};

create_exception!(
    firsttouch,
    UnsupportedError,
    exceptions::PyRuntimeError,
    "This NumPy or platform lacks what firsttouch needs."
);

/// What an exception is made of.
pub struct Message<T>(T);

fn text(py: Python<'_>, text: &str) -> Option<Py<PyAny>> {
    // SAFETY: the text is as long as said; null comes with an error.
    let made = unsafe { ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as isize) };
    owned(py, made)
}

fn owned(py: Python<'_>, made: *mut ffi::PyObject) -> Option<Py<PyAny>> {
    // SAFETY: a new reference or null.
    let made = unsafe { Bound::from_owned_ptr_or_err(py, made) };
    made.ok().map(Bound::unbind) // the error is taken, and dropped: the one on its way message more
}

impl<T: AsRef<str> + Send + Sync> PyErrArguments for Message<T> {
    fn arguments(self, py: Python<'_>) -> Py<PyAny> {
        text(py, self.0.as_ref()).unwrap_or_else(|| py.None())
    }
}

/// A number of the system's, and what it means.
pub struct OsErrorMessage(i32, String);

impl PyErrArguments for OsErrorMessage {
    fn arguments(self, py: Python<'_>) -> Py<PyAny> {
        let pair = || {
            // SAFETY: as in `text`; the number and the text are borrowed while the tuple takes references of its own.
            unsafe {
                let number = owned(py, ffi::PyLong_FromLong(self.0.into()))?;
                let words = text(py, &self.1)?;
                owned(py, ffi::PyTuple_Pack(2, number.as_ptr(), words.as_ptr()))
            }
        };
        pair().unwrap_or_else(|| py.None())
    }
}

/// What an exception can be made from.
pub trait IntoMessage {
    fn error<E: PyTypeInfo>(self) -> PyErr;
}

impl IntoMessage for String {
    fn error<E: PyTypeInfo>(self) -> PyErr {
        PyErr::new::<E, _>(Message(self))
    }
}

impl IntoMessage for &'static str {
    fn error<E: PyTypeInfo>(self) -> PyErr {
        PyErr::new::<E, _>(Message(self))
    }
}

impl IntoMessage for (i32, String) {
    fn error<E: PyTypeInfo>(self) -> PyErr {
        PyErr::new::<E, _>(OsErrorMessage(self.0, self.1))
    }
}

macro_rules! exceptions {
    ($($name:ident),*) => {$(
        #[doc = concat!("Raises `", stringify!($name), "`.")]
        pub enum $name {}

        impl $name {
            /// Such an exception.
            pub fn new_err(message: impl IntoMessage) -> PyErr {
                message.error::<exceptions::$name>()
            }
        }
    )*};
}

exceptions!(PyMemoryError, PyOSError, PyRuntimeError, PyTypeError, PyValueError);

/// `MemoryError`, of which the interpreter keeps some ready.
#[cold]
pub fn out_of_memory(py: Python<'_>) -> PyErr {
    // SAFETY: sets an error.
    unsafe { ffi::PyErr_NoMemory() };
    PyErr::fetch(py)
}
