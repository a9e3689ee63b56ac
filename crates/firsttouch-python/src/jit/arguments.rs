//! Buffers as arguments of compiled code: entered before the call, left after it.

#![allow(unsafe_code)] // Safety: Numba calls these with the GIL held, with the objects of its call.

use super::calls::thread;
use super::cursor::Cursor;
use super::failure::{self, Failure};
use super::temporary::JitBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A buffer for each thread of a loop in parallel.
#[pyclass(frozen, module = "firsttouch._firsttouch")]
pub struct JitBuffers {
    buffers: Vec<Py<JitBuffer>>,
    /// Their cursors, once entered.
    cursors: Vec<AtomicPtr<Cursor>>,
}

#[pymethods]
impl JitBuffers {
    #[new]
    fn new(buffers: Vec<Py<JitBuffer>>) -> PyResult<Self> {
        let twice = |i: usize| buffers[..i].iter().any(|other| other.is(&buffers[i]));
        if buffers.is_empty() || (0..buffers.len()).any(twice) {
            return Err(PyValueError::new_err(
                "each thread needs a buffer of its own: give different ones, at least one",
            ));
        }
        let cursors = buffers.iter().map(|_| Default::default()).collect();
        Ok(Self { buffers, cursors })
    }

    /// The buffers, by the numbers of their threads.
    #[getter]
    fn buffers(&self, py: Python<'_>) -> Vec<Py<JitBuffer>> {
        self.buffers.iter().map(|buffer| buffer.clone_ref(py)).collect()
    }
}

impl JitBuffers {
    fn enter(&self, py: Python<'_>) -> PyResult<*const Self> {
        for (entered, (buffer, slot)) in self.buffers.iter().zip(&self.cursors).enumerate() {
            match JitBuffer::enter(buffer.bind(py)) {
                Ok(cursor) => slot.store(cursor, Relaxed),
                Err(error) => {
                    self.leave(entered);
                    return Err(error);
                }
            }
        }
        Ok(self)
    }

    fn leave(&self, entered: usize) {
        for buffer in &self.buffers[..entered] {
            buffer.get().leave();
        }
    }
}

/// Runs with an argument of a type; nothing where an exception was set.
///
/// # Safety
/// The GIL is held, and the object lives.
unsafe fn with<T, R>(object: *mut ffi::PyObject, run: impl FnOnce(&Bound<'_, T>) -> PyResult<R>) -> Option<R>
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
    unsafe { with(object, JitBuffer::enter) }.unwrap_or(null_mut())
}

extern "C" fn leave(object: *mut ffi::PyObject) {
    // SAFETY: as above; the type was checked when it was entered.
    unsafe {
        with(object, |buffer: &Bound<'_, JitBuffer>| {
            buffer.get().leave();
            Ok(())
        })
    };
}

extern "C" fn enter_all(object: *mut ffi::PyObject) -> *const JitBuffers {
    // SAFETY: as above.
    unsafe { with(object, |buffers: &Bound<'_, JitBuffers>| buffers.get().enter(buffers.py())) }.unwrap_or(null())
}

extern "C" fn leave_all(object: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        with(object, |buffers: &Bound<'_, JitBuffers>| {
            let buffers = buffers.get();
            buffers.leave(buffers.buffers.len());
            Ok(())
        })
    };
}

/// The buffer of the thread with a number, which uses it from now on.
extern "C" fn local(buffers: *const JitBuffers, number: usize) -> *mut Cursor {
    // SAFETY: entered, and the call that did so lasts.
    let buffers = unsafe { &*buffers };
    let Some(slot) = buffers.cursors.get(number) else {
        failure::put(Failure::Few(buffers.cursors.len(), number));
        return null_mut();
    };
    let cursor = slot.load(Relaxed);
    // SAFETY: numbers of threads that run at a time differ, so no other thread uses this cursor.
    unsafe { (*cursor).owner = thread() };
    cursor
}

/// Names and addresses for the linker of compiled code.
pub fn symbols() -> [(&'static str, usize); 5] {
    [
        ("firsttouch_jit_enter", (enter as *const ()).expose_provenance()),
        ("firsttouch_jit_leave", (leave as *const ()).expose_provenance()),
        ("firsttouch_jit_enter_all", (enter_all as *const ()).expose_provenance()),
        ("firsttouch_jit_local", (local as *const ()).expose_provenance()),
        ("firsttouch_jit_leave_all", (leave_all as *const ()).expose_provenance()),
    ]
}
