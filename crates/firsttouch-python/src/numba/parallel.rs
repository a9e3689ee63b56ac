//! Parallel loops: a buffer for each thread.

#![allow(unsafe_code)] // Safety: Numba calls these with the objects of its call; threads that run at a time have numbers.

use crate::numba::calls::thread;
use crate::numba::cursor::Cursor;
use crate::numba::entry::{enter_buffer, leave_buffer, with};
use crate::numba::failure::{self, Failure, FailureReport};
use crate::python::errors::PyValueError;
use crate::scratch::buffer::PyBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A buffer for each thread of a loop in parallel.
#[pyclass(frozen, subclass, module = "firsttouch._firsttouch")]
pub struct NumbaBuffers {
    buffers: Vec<Py<PyBuffer>>,
    /// Their cursors, once entered.
    cursors: Vec<AtomicPtr<Cursor>>,
    /// The failure of a thread other than the caller's, which Numba would not report.
    failed: Mutex<Option<FailureReport>>,
}

#[pymethods]
impl NumbaBuffers {
    #[new]
    fn new(buffers: Vec<Py<PyBuffer>>) -> PyResult<Self> {
        let twice = |i: usize| buffers[..i].iter().any(|other| other.is(&buffers[i]));
        if buffers.is_empty() || (0..buffers.len()).any(twice) {
            return Err(PyValueError::new_err(
                "each thread needs a buffer of its own: give different ones, at least one",
            ));
        }
        let cursors = buffers.iter().map(|_| Default::default()).collect();
        Ok(Self { buffers, cursors, failed: Mutex::default() })
    }

    /// The buffers, by the numbers of their threads.
    #[getter]
    fn buffers(&self, py: Python<'_>) -> Vec<Py<PyBuffer>> {
        self.buffers.iter().map(|buffer| buffer.clone_ref(py)).collect()
    }
}

impl NumbaBuffers {
    fn enter(&self, py: Python<'_>) -> PyResult<*const Self> {
        for (entered, (buffer, slot)) in self.buffers.iter().zip(&self.cursors).enumerate() {
            match enter_buffer(buffer.bind(py)) {
                Ok(cursor) => slot.store(cursor, Relaxed),
                Err(error) => {
                    self.leave(py, entered);
                    return Err(error);
                }
            }
        }
        Ok(self)
    }

    fn leave(&self, py: Python<'_>, entered: usize) {
        for buffer in &self.buffers[..entered] {
            leave_buffer(buffer.bind(py));
        }
    }

    /// Takes the failure of another thread; the buffers are still entered.
    fn take_failure(&self) -> Option<FailureReport> {
        let report = |slot: &AtomicPtr<Cursor>| {
            // SAFETY: entered, and the loop is over: no other thread uses it.
            unsafe { slot.load(Relaxed).as_mut() }.and_then(|cursor| cursor.failed.take())
        };
        let own = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.cursors.iter().filter_map(report).last().or(own)
    }
}

extern "C" fn enter_all(object: *mut ffi::PyObject) -> *const NumbaBuffers {
    // SAFETY: as above.
    unsafe { with(object, |buffers: &Bound<'_, NumbaBuffers>| buffers.get().enter(buffers.py())) }.unwrap_or(null())
}

extern "C" fn leave_all(object: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        with(object, |buffers: &Bound<'_, NumbaBuffers>| {
            let (py, buffers) = (buffers.py(), buffers.get());
            let failure = buffers.take_failure();
            buffers.leave(py, buffers.buffers.len());
            // An exception that is already set is that of the loop's part in this thread.
            failure.filter(|_| !PyErr::occurred(py)).map_or(Ok(()), |report| Err(report.error(py)))
        })
    };
}

/// The buffer of the thread with a number, which uses it from now on.
extern "C" fn local(buffers: *const NumbaBuffers, number: usize) -> *mut Cursor {
    // SAFETY: entered, and the call that did so lasts.
    let buffers = unsafe { &*buffers };
    let Some(slot) = buffers.cursors.get(number) else {
        let error = Failure::Few(buffers.cursors.len(), number);
        *buffers.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.report());
        failure::put(error);
        return null_mut();
    };
    let cursor = slot.load(Relaxed);
    // SAFETY: numbers of threads that run at a time differ, so no other thread uses this cursor.
    unsafe { (*cursor).owner = thread() };
    cursor
}

/// Names and addresses for the linker of compiled code.
pub fn symbols() -> [(&'static str, usize); 3] {
    [
        ("firsttouch_numba_enter_all", (enter_all as *const ()).expose_provenance()),
        ("firsttouch_numba_leave_all", (leave_all as *const ()).expose_provenance()),
        ("firsttouch_numba_local", (local as *const ()).expose_provenance()),
    ]
}
