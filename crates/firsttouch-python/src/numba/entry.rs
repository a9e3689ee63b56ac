//! Entry to compiled code, and exit, for a buffer as an argument: a call from Python is a scope of its own.

#![allow(unsafe_code)] // Safety: the list of running calls is guarded, and whoever is on it has the cursor to itself.

use crate::numba::calls::thread;
use crate::numba::cursor::Cursor;
use crate::numba::frame::MarkFrame;
use crate::python::callbacks::callback;
use crate::python::errors::{PyMemoryError, PyRuntimeError};
use crate::python::guarded::Guarded;
use crate::python::once::Once;
use crate::scratch::buffer::PyBuffer;
use firsttouch::scratch::{Buffer, Owner};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

/// A buffer's cursor, made when compiled code first gets the buffer.
#[derive(Default)]
pub struct CursorHandle {
    cursor: AtomicPtr<Cursor>,
    calls: Guarded<RunningCalls>,
}

/// The calls of compiled code that run.
#[derive(Default)]
struct RunningCalls {
    /// The frame that each call opened, the innermost last.
    frames: Vec<*mut MarkFrame>,
    /// Python's identifier of the thread that runs them, by which its name is found.
    ident: usize,
    /// The same thread, and its process.
    owner: Option<Owner>,
}

// SAFETY: a frame is only passed on to its cursor, which the one thread uses that runs the calls.
unsafe impl Send for RunningCalls {}

impl CursorHandle {
    /// A call of compiled code begins.
    pub fn enter(&self, owner: &Bound<'_, PyAny>, buffer: &Arc<Buffer>) -> PyResult<*mut Cursor> {
        let mut calls = self.calls.lock(owner.py());
        // SAFETY: no more than asking for the number of this thread.
        let here = unsafe { libc::pthread_self() } as usize;
        let now = Owner::current();
        let other = calls.owner.filter(|user| !calls.frames.is_empty() && !user.is_same_thread(now));
        if other.is_some_and(|user| !user.is_here()) {
            // This is a forked child, without the thread that ran them: its cursor stays as it was in the middle of that.
            calls.frames.clear();
            self.cursor.store(null_mut(), Relaxed);
        } else if other.is_some() {
            let user = calls.ident;
            drop(calls); // the text is Python's
            return Err(PyRuntimeError::new_err(in_use(owner.py(), user, here)));
        }
        if self.cursor.load(Relaxed).is_null() {
            self.cursor.store(Box::into_raw(Box::new(Cursor::new(buffer.clone(), owner.as_ptr()))), Relaxed);
        }
        let address = self.cursor.load(Relaxed);
        // SAFETY: made above, dropped with the handle; no other thread uses it, as none but this one runs calls.
        let cursor = unsafe { &mut *address };
        let frame = cursor.open().map_err(|_| PyMemoryError::new_err("no memory is left to enter a buffer"))?;
        (calls.ident, calls.owner) = (here, Some(now));
        cursor.owner = thread();
        cursor.caller = cursor.owner;
        calls.frames.push(frame);
        Ok(address)
    }

    /// The innermost call ends.
    pub fn leave(&self, py: Python<'_>) {
        let (innermost, is_last) = {
            let calls = self.calls.lock(py);
            (calls.frames.last().copied(), calls.frames.len() == 1)
        };
        // SAFETY: made by the call that ends, and used by this thread, which runs it: no other enters while it is
        // listed.
        let (Some(frame), Some(cursor)) = (innermost, unsafe { self.cursor.load(Relaxed).as_mut() }) else {
            return;
        };
        // Not under the lock: what is given back may be custom scratch memory, which runs code of its own.
        cursor.close(frame);
        if is_last {
            cursor.empty();
            cursor.owner = 0;
        }
        self.calls.lock(py).frames.pop();
    }
}

impl Drop for CursorHandle {
    fn drop(&mut self) {
        let cursor = *self.cursor.get_mut();
        if self.calls.get_mut().frames.is_empty() && !cursor.is_null() {
            // SAFETY: made by `enter`; no call runs that could use it.
            drop(unsafe { Box::from_raw(cursor) });
        }
    }
}

/// Why a thread may not use a buffer.
fn in_use(py: Python<'_>, owner: usize, caller: usize) -> String {
    let text = || -> PyResult<String> { callback(py, "numba_in_use")?.call1((owner, caller))?.extract() };
    text().unwrap_or_else(|_| format!("the buffer is in use in thread {owner}; this is thread {caller}"))
}

/// The state of a buffer's calls from compiled code.
#[pyclass(frozen, module = "firsttouch._firsttouch")]
struct JitHandle(CursorHandle);

/// Makes the type of handles before a call needs it.
pub fn make_type(py: Python<'_>) {
    py.get_type::<JitHandle>();
}

pub fn enter_buffer(buffer: &Bound<'_, PyBuffer>) -> PyResult<*mut Cursor> {
    let py = buffer.py();
    let new = || Py::new(py, JitHandle(CursorHandle::default())).map(Py::into_any);
    let handle = buffer.get().jit.get_or_make(py, new)?.bind(py).cast::<JitHandle>()?;
    handle.get().0.enter(buffer.as_any(), buffer.get().buffer())
}

pub fn leave_buffer(buffer: &Bound<'_, PyBuffer>) {
    let py = buffer.py();
    if let Some(Ok(handle)) = buffer.get().jit.get(py).map(|handle| handle.bind(py).cast::<JitHandle>()) {
        handle.get().0.leave(py);
    }
}

/// Runs with an argument of a type; `None` if an exception was set.
///
/// # Safety
/// The GIL is held, and the object is live.
pub unsafe fn with<T, R>(object: *mut ffi::PyObject, run: impl FnOnce(&Bound<'_, T>) -> PyResult<R>) -> Option<R>
where
    T: pyo3::PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync,
{
    // SAFETY: the thread is attached and the object is live (compiled code, within its call).
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the thread is attached and the object is live (compiled code, within its call).
    let object = unsafe { Bound::from_borrowed_ptr(py, object) };
    let done = object.cast::<T>().map_err(PyErr::from).and_then(run);
    done.map_err(|error| error.restore(py)).ok()
}

extern "C" fn enter(object: *mut ffi::PyObject) -> *mut Cursor {
    // SAFETY: Numba holds the GIL and a reference to each argument for as long as the call (`with`).
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
        ("firsttouch_numba_enter", (enter as *const ()).expose_provenance()),
        ("firsttouch_numba_leave", (leave as *const ()).expose_provenance()),
    ]
}
