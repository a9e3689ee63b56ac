//! Values and errors made for Python where memory is out (law 7): an error, where PyO3's own conversions of numbers, strings
//! and dicts panic, and write to standard error; and exceptions where PyO3 panics for lack of a message, outside of where a
//! panic would be caught.

#![allow(unsafe_code)] // Safety: calls that return a new reference or null with an error.

use firsttouch::reserve::{WithReserve, inject, is_ready};
use pyo3::exceptions::{self, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyList, PyString, PyTuple};
use pyo3::{IntoPyObject, PyClass, PyErrArguments, create_exception, ffi};
use std::collections::BTreeMap;
use std::ptr::null;

/// A value that can be converted to a Python object.
pub trait IntoPython {
    /// The object.
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>>;
}

/// A return value that is converted by [`IntoPython`].
pub struct ToPython<T>(pub T);

impl<'py, T: IntoPython> IntoPyObject<'py> for ToPython<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.into_python(py)
    }
}

/// The name of an attribute, a method or a module.
pub struct Name(pub &'static str);

impl<'py> IntoPyObject<'py> for Name {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        // SAFETY: a text was made.
        self.0.into_python(py).map(|text| unsafe { text.cast_into_unchecked() })
    }
}

/// The arguments of a call.
pub fn arguments<'py>(py: Python<'py>, values: impl IntoPython) -> PyResult<Bound<'py, PyTuple>> {
    Ok(values.into_python(py)?.cast_into::<PyTuple>()?)
}

fn owned(py: Python<'_>, made: *mut ffi::PyObject) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a new reference, or null with an error.
    unsafe { Bound::from_owned_ptr_or_err(py, made) }
}

macro_rules! numbers {
    ($($kind:ty, $function:ident);*) => {$(
        impl IntoPython for $kind {
            fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
                // SAFETY: makes a number.
                owned(py, unsafe { ffi::$function(self.into()) })
            }
        }
    )*};
}

numbers!(
    u64, PyLong_FromUnsignedLongLong; u32, PyLong_FromUnsignedLongLong; u8, PyLong_FromUnsignedLongLong;
    i64, PyLong_FromLongLong; i32, PyLong_FromLongLong; f64, PyFloat_FromDouble; bool, PyBool_FromLong
);

impl IntoPython for usize {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        (self as u64).into_python(py)
    }
}

impl IntoPython for isize {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        (self as i64).into_python(py)
    }
}

impl IntoPython for &str {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        // SAFETY: the text is as long as said.
        owned(py, unsafe { ffi::PyUnicode_FromStringAndSize(self.as_ptr().cast(), self.len() as isize) })
    }
}

impl IntoPython for String {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        self.as_str().into_python(py)
    }
}

impl<T: IntoPython> IntoPython for Option<T> {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        self.map_or_else(|| Ok(py.None().into_bound(py)), |value| value.into_python(py))
    }
}

impl<T: IntoPython> IntoPython for Vec<T> {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let count = isize::try_from(self.len()).map_err(|_| PyOverflowError::new_err(""))?;
        // SAFETY: a list of empty places, each of which is filled, or the list goes with those that were.
        unsafe {
            let list = owned(py, ffi::PyList_New(count))?.cast_into_unchecked::<PyList>();
            for (at, value) in self.into_iter().enumerate() {
                if ffi::PyList_SetItem(list.as_ptr(), at as isize, value.into_python(py)?.into_ptr()) != 0 {
                    return Err(PyErr::fetch(py));
                }
            }
            Ok(list.into_any())
        }
    }
}

impl<T> IntoPython for Bound<'_, T> {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(self.into_any().unbind().into_bound(py))
    }
}

impl<T: PyClass> IntoPython for Py<T> {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(self.into_bound(py).into_any())
    }
}

fn tuple<'py, const N: usize>(py: Python<'py>, items: [Bound<'py, PyAny>; N]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: as for lists.
    unsafe {
        let tuple = owned(py, ffi::PyTuple_New(N as isize))?.cast_into_unchecked::<PyTuple>();
        for (at, item) in items.into_iter().enumerate() {
            if ffi::PyTuple_SetItem(tuple.as_ptr(), at as isize, item.into_ptr()) != 0 {
                return Err(PyErr::fetch(py));
            }
        }
        Ok(tuple.into_any())
    }
}

macro_rules! tuples {
    ($(($($part:ident $name:ident),*));*) => {$(
        impl<$($part: IntoPython),*> IntoPython for ($($part,)*) {
            fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
                let ($($name,)*) = self;
                tuple(py, [$($name.into_python(py)?),*])
            }
        }
    )*};
}

tuples!(
    (A a); (A a, B b); (A a, B b, C c); (A a, B b, C c, D d); (A a, B b, C c, D d, E e);
    (A a, B b, C c, D d, E e, F f)
);

impl<A: IntoPython, B: IntoPython> IntoPython for BTreeMap<A, B> {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let dict = Dict::new(py)?;
        self.into_iter().try_for_each(|(key, value)| dict.enter(key, value))?;
        Ok(dict.done().into_any())
    }
}

/// A copy of some bytes. It is made empty and grown, as CPython 3.13, where it has no memory for the bytes of a new
/// bytearray, frees it with a count of exports that was never set.
pub fn bytes<'py>(py: Python<'py>, from: &[u8]) -> PyResult<Bound<'py, PyByteArray>> {
    // SAFETY: what is made is a bytearray, which nobody else has yet; it has as many bytes as are copied.
    unsafe {
        let made = owned(py, ffi::PyByteArray_FromStringAndSize(null(), 0))?;
        if ffi::PyByteArray_Resize(made.as_ptr(), from.len() as isize) < 0 {
            return Err(PyErr::fetch(py));
        }
        let bytes = ffi::PyByteArray_AsString(made.as_ptr()).cast::<u8>();
        bytes.copy_from_nonoverlapping(from.as_ptr(), from.len());
        Ok(made.cast_into_unchecked())
    }
}

/// An empty list.
pub fn list(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    // SAFETY: makes a list.
    unsafe { Ok(owned(py, ffi::PyList_New(0))?.cast_into_unchecked()) }
}

/// A dict under construction.
pub struct Dict<'py>(Bound<'py, PyDict>);

impl<'py> Dict<'py> {
    /// An empty one.
    pub fn new(py: Python<'py>) -> PyResult<Self> {
        // SAFETY: makes a dict.
        let made = owned(py, unsafe { ffi::PyDict_New() })?;
        // SAFETY: it is one.
        Ok(Self(unsafe { made.cast_into_unchecked() }))
    }

    /// Enters a value.
    pub fn set_item(&self, name: &str, value: impl IntoPython) -> PyResult<()> {
        self.enter(name, value)
    }

    fn enter(&self, key: impl IntoPython, value: impl IntoPython) -> PyResult<()> {
        let py = self.0.py();
        let (name, value) = (key.into_python(py)?, value.into_python(py)?);
        // SAFETY: all three live.
        if unsafe { ffi::PyDict_SetItem(self.0.as_ptr(), name.as_ptr(), value.as_ptr()) } != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(())
    }

    /// The dict.
    pub fn done(self) -> Bound<'py, PyDict> {
        self.0
    }
}

create_exception!(
    firsttouch,
    UnsupportedError,
    exceptions::PyRuntimeError,
    "Something is not supported by this platform, kernel, NumPy or build.\n\nSee Also\n--------\nfirsttouch.install : Raises it \
     where NumPy's memory handler is not as expected."
);

/// What an exception is made of; where there is no memory for it, the exception has no message.
struct Message<T>(T);

impl<T: IntoPython + Send + Sync> PyErrArguments for Message<T> {
    fn arguments(self, py: Python<'_>) -> Py<PyAny> {
        self.0.into_python(py).map_or_else(|_| py.None(), Bound::unbind)
    }
}

macro_rules! exceptions {
    ($($name:ident),*) => {$(
        #[doc = concat!("Raises `", stringify!($name), "`.")]
        pub enum $name {}

        impl $name {
            /// Such an exception, with a text, or a number of the system's and what it means.
            pub fn new_err(message: impl IntoPython + Send + Sync + 'static) -> PyErr {
                PyErr::new::<exceptions::$name, _>(Message(message))
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
