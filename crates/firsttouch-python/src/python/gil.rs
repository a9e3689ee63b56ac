//! Interpreters with and without a GIL: calls that end with the interpreter, whether a thread is attached, and an exception that
//! is on its way while an array ends.
//!
//! What several threads may reach is in a `Lock` of the core's. It is taken attached to the interpreter, for a few instructions
//! in which no Python code runs and nothing is detached: without a GIL a fork, or whatever else stops all threads, then meets
//! none in the middle of it.

#![allow(unsafe_code)] // Safety: functions of the interpreter, called while attached where they ask for it.

use crate::python::symbol;
use crate::python::values::PyRuntimeError;
use firsttouch::sync::OnceBox;
use pyo3::ffi::{self, PyThreadState};
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple, PyTypeMethods, PyWeakrefReference};
use std::hint::black_box;
use std::mem::transmute;

/// Has PyO3 make what its own functions make at their first use: names of attributes of types, types that it knows by name, and
/// what it says of arguments that are refused. Its `PyOnceLock` lets the interpreter go while a value is being made: a child that
/// another thread forks at that moment would wait for ever for the thread that makes it. What this module makes once is in a
/// [`OnceBox`], and so is each [`Name`].
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

/// A name of Python's that is made once. (PyO3's `intern!` has a `PyOnceLock`; clippy.toml forbids it.)
pub struct Name(&'static str, OnceBox<Py<PyString>>);

impl Name {
    pub const fn new(text: &'static str) -> Self {
        Self(text, OnceBox::new())
    }

    pub fn get<'py>(&'py self, py: Python<'py>) -> &'py Bound<'py, PyString> {
        self.1.get_or_init(|| Box::new(PyString::intern(py, self.0).unbind())).bind(py)
    }
}

#[pyfunction]
fn takes_a_number(_number: i32) {}

type Object = *mut ffi::PyObject;

/// Calls a function that is Python's own, and may run when the interpreter ends.
///
/// Up to 3.13 a daemon thread that goes on then is ended inside of such a call, and the C library unwinds its frames: ours would
/// drop objects of an interpreter to which nobody is attached. There the thread waits for the end of the process instead, as
/// from 3.14 on all do.
pub fn call<'py>(
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let kwargs = kwargs.map_or(std::ptr::null_mut(), |kwargs| kwargs.as_ptr());
    let call: unsafe extern "C" fn(Object, Object, Object) -> Object = ffi::PyObject_Call;
    // SAFETY: the same function, through which the C library may unwind; PyO3 says that nothing does, and the compiler must not
    // know that it is this one.
    let call: unsafe extern "C-unwind" fn(Object, Object, Object) -> Object = unsafe { transmute(black_box(call)) };
    // SAFETY: a callable, a tuple, and a dictionary or null; the result is a new reference, or null with an error.
    unsafe { or_wait(function.py(), || call(function.as_ptr(), args.as_ptr(), kwargs)) }
}

/// The same, of a method.
pub fn call_method<'py>(
    object: &Bound<'py, PyAny>,
    name: &str,
    args: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Bound<'py, PyAny>> {
    call(&object.getattr(name)?, &args.into_pyobject(object.py())?, None)
}

/// The same, of any call that lets the interpreter go.
///
/// # Safety
/// The call gives a new reference, or null with an error.
pub unsafe fn or_wait(py: Python<'_>, call: impl FnOnce() -> Object) -> PyResult<Bound<'_, PyAny>> {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            loop {
                std::thread::park();
            }
        }
    }
    let waits = Waits;
    let returned = call();
    std::mem::forget(waits);
    // SAFETY: a new reference, or null with an error, as demanded.
    unsafe { Bound::from_owned_ptr_or_err(py, returned) }
}

type Current = unsafe extern "C" fn() -> *mut PyThreadState;

/// Whether this thread is attached to the interpreter. What may be asked of an abi3 module ends the process where it is not,
/// and to attach would wait for the GIL, whose holder may be waiting for this thread.
pub fn is_attached() -> bool {
    static CURRENT: OnceBox<Option<(Current, bool)>> = OnceBox::new();
    let current = CURRENT.get_or_init(|| {
        // The one is CPython's since 3.13, the other was before. Before 3.12 the state is that of whichever thread holds the GIL.
        // SAFETY: both symbols, where they exist, are functions of this type.
        Box::new(unsafe {
            let of_thread = symbol(c"PyThreadState_GetUnchecked").map(|found| (found, true));
            of_thread.or_else(|| Some((symbol(c"_PyThreadState_UncheckedGet")?, false)))
        })
    });
    let Some((current, is_own)) = current else { return false };
    // SAFETY: reads a pointer, and has no preconditions.
    let state = unsafe { current() };
    // SAFETY: PyGILState_GetThisThreadState has no preconditions.
    !state.is_null() && (*is_own || state == unsafe { ffi::PyGILState_GetThisThreadState() })
}

/// What Python keeps for this thread, and drops with it.
pub fn thread_dict(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // SAFETY: a borrowed reference, or null where there is no memory for it, or the thread is ending.
    let dict = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyThreadState_GetDict()) };
    Ok(dict.ok_or_else(|| PyRuntimeError::new_err("this thread is not one of Python's any more"))?.cast_into()?)
}

/// Calls what may run Python while an array ends, with the exception that is on its way in this thread put aside: ctypes would
/// take it for one of its own, and the interpreter would miss it (`SystemError`).
pub fn aside(call: &dyn Fn()) {
    if !is_attached() {
        return call();
    }
    // SAFETY: the thread is attached, and stays so: `call` ends as it began.
    let py = unsafe { Python::assume_attached() };
    let pending = PyErr::take(py);
    call();
    if let Some(error) = pending {
        error.restore(py);
    }
}
