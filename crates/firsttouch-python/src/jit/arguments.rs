//! Buffers as arguments of compiled code: entered before the call, left after it.

#![allow(unsafe_code)] // Safety: Numba calls these with the GIL held, with the objects of its call.

use super::cursor::Cursor;
use super::entry::Handle;
use crate::scratch::PyBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ptr::null_mut;

/// What a buffer's calls from compiled code need.
#[pyclass(frozen, module = "firsttouch._firsttouch")]
struct JitHandle(Handle);

pub fn enter_buffer(buffer: &Bound<'_, PyBuffer>) -> PyResult<*mut Cursor> {
    let py = buffer.py();
    let new = || Py::new(py, JitHandle(Handle::default())).map(Py::into_any);
    let handle = buffer.get().jit.get_or_try_init(py, new)?.bind(py).cast::<JitHandle>()?;
    handle.get().0.enter(buffer.as_any(), buffer.get().backing())
}

pub fn leave_buffer(buffer: &Bound<'_, PyBuffer>) {
    let py = buffer.py();
    if let Some(Ok(handle)) = buffer.get().jit.get(py).map(|handle| handle.bind(py).cast::<JitHandle>()) {
        handle.get().0.leave();
    }
}

/// Runs with an argument of a type; nothing where an exception was set.
///
/// # Safety
/// The GIL is held, and the object lives.
pub unsafe fn with<T, R>(object: *mut ffi::PyObject, run: impl FnOnce(&Bound<'_, T>) -> PyResult<R>) -> Option<R>
where
    T: pyo3::PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync,
{
    // SAFETY: the caller's promise.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the caller's promise.
    let object = unsafe { Bound::from_borrowed_ptr(py, object) };
    let done = object.cast::<T>().map_err(PyErr::from).and_then(run);
    done.map_err(|error| error.restore(py)).ok()
}

extern "C" fn enter(object: *mut ffi::PyObject) -> *mut Cursor {
    // SAFETY: Numba's promise for arguments.
    unsafe { with(object, enter_buffer) }.unwrap_or(null_mut())
}

extern "C" fn leave(object: *mut ffi::PyObject) {
    // SAFETY: as above; the type was checked when it was entered.
    unsafe {
        with(object, |buffer: &Bound<'_, PyBuffer>| {
            leave_buffer(buffer);
            Ok(())
        })
    };
}

/// Names and addresses for the linker of compiled code.
pub fn symbols() -> [(&'static str, usize); 2] {
    [
        ("firsttouch_jit_enter", (enter as *const ()).expose_provenance()),
        ("firsttouch_jit_leave", (leave as *const ()).expose_provenance()),
    ]
}
