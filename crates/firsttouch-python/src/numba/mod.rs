//! Scratch buffers inside code compiled by Numba: the ways into such code and out of it, the functions that it calls, Numba's
//! reference counts, and why a call failed.
//!
//! Each call from Python has a [`Cursor`] of its own, which its type keeps inside the call and, in a loop in parallel, inside a
//! thread. Compiled code bumps it itself, and calls the functions below in all other cases; they need no interpreter, as loops
//! in parallel run without it.

#![allow(unsafe_code)] // Safety: compiled code passes the cursors that it got on entry, during the same call.

pub mod cursor;

use crate::python::values::{PyMemoryError, PyRuntimeError, PyValueError};
use crate::scratch::buffer::PyBuffer;
use cursor::{API, Api, Cursor, MarkFrame};
use firsttouch::allocator::AllocError;
use firsttouch::failure;
use firsttouch::sync::thread;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::{ManuallyDrop, transmute};
use std::ptr::{null_mut, with_exposed_provenance};
use std::sync::atomic::Ordering;

/// Does something with a cursor; the failure is kept for its exception.
///
/// # Safety
/// Compiled code has the cursor from `enter` or `local`, and its call lasts.
unsafe fn attempt<T>(cursor: *mut Cursor, run: impl FnOnce(&mut Cursor) -> Result<T, Failure>) -> Option<T> {
    // SAFETY: the caller's promise; no other thread uses the cursor.
    let cursor = unsafe { &mut *cursor };
    let failure = match run(cursor) {
        Ok(done) => return Some(done),
        Err(failure) => failure,
    };
    if cursor.caller != thread() {
        cursor.failed = Some(failure.clone()); // Numba would not report it
    }
    failure.put();
    None
}

/// Memory for an array of a shape, or a failure where there can be none.
extern "C" fn allocate(cursor: *mut Cursor, lengths: *const isize, count: usize, itemsize: isize) -> usize {
    // SAFETY: compiled code passes an array of that many lengths; its cursor is from `enter` or `local`, and its call lasts (head of
    // the file).
    unsafe {
        let lengths = std::slice::from_raw_parts(lengths, count);
        attempt(cursor, |cursor| cursor.allocate(bytes(lengths, itemsize)?)).unwrap_or(0)
    }
}

fn bytes(lengths: &[isize], itemsize: isize) -> Result<usize, Failure> {
    let is_negative = lengths.iter().any(|&length| length < 0);
    let size = lengths.iter().try_fold(itemsize, |size, &length| size.checked_mul(length));
    if let (Some(size), false) = (size, is_negative) {
        return Ok(size as usize);
    }
    let shape: Vec<String> = lengths.iter().map(ToString::to_string).collect();
    let shape = format!("({}{})", shape.join(", "), if lengths.len() == 1 { "," } else { "" });
    Err(Failure::Value(if is_negative {
        format!("negative dimensions are not allowed: {shape}")
    } else {
        format!("no address space holds an array of shape {shape} with items of {itemsize} bytes")
    }))
}

extern "C" fn mark(cursor: *mut Cursor) -> *mut MarkFrame {
    // SAFETY: compiled code passes the cursor from `enter` or `local`, and its call lasts.
    unsafe { attempt(cursor, Cursor::open) }.unwrap_or(null_mut())
}

/// Whether it was done.
extern "C" fn rewind(cursor: *mut Cursor, frame: *mut MarkFrame) -> bool {
    // SAFETY: compiled code passes the cursor from `enter` or `local`, and its call lasts.
    unsafe { attempt(cursor, |cursor| cursor.rewind(frame)) }.is_some()
}

/// A new reference to a cursor's buffer.
extern "C" fn object(cursor: *mut Cursor) -> *mut ffi::PyObject {
    // SAFETY: called with the GIL held; the call has a reference to the object.
    unsafe { ffi::Py_NewRef((*cursor).object) }
}

/// A cursor for a call, which lasts no longer than `buffer`.
fn taken(buffer: &Bound<'_, PyBuffer>) -> PyResult<*mut Cursor> {
    let own = buffer.get();
    let idle = own.cursors.lock().pop();
    let mut cursor = idle.unwrap_or_else(|| Box::new(Cursor::new(own.buffer().clone())));
    (cursor.object, cursor.caller) = (buffer.as_ptr(), thread());
    cursor.open().map_err(|failure| failure.error())?;
    Ok(Box::into_raw(cursor))
}

/// Gives a cursor back at the end of its call.
///
/// # Safety
/// It is from `taken`, and no longer used; the thread is attached.
unsafe fn give_back(cursor: *mut Cursor) {
    // SAFETY: `taken` made the box, nobody uses it any more, and the thread is attached, as demanded.
    let (mut cursor, py) = unsafe { (Box::from_raw(cursor), Python::assume_attached()) };
    cursor.end(); // not under a lock: an upstream may run code of its own
    // SAFETY: the call has a reference to the object until after this.
    let buffer = unsafe { Bound::from_borrowed_ptr(py, cursor.object) };
    if let Ok(buffer) = buffer.cast::<PyBuffer>() {
        buffer.get().cursors.lock().push(cursor);
    }
}

/// Runs with an argument of compiled code; null if an exception was set.
///
/// # Safety
/// The thread is attached, and the object is live.
unsafe fn with<T: pyo3::PyClass, R>(
    object: *mut ffi::PyObject,
    run: impl FnOnce(&Bound<'_, T>) -> PyResult<*mut R>,
) -> *mut R {
    // SAFETY: the thread is attached, and the object is live, as demanded.
    let (py, object) = unsafe {
        let py = Python::assume_attached();
        (py, Bound::from_borrowed_ptr(py, object))
    };
    object.cast::<T>().map_err(PyErr::from).and_then(run).unwrap_or_else(|error| {
        error.restore(py);
        null_mut()
    })
}

extern "C" fn enter(object: *mut ffi::PyObject) -> *mut Cursor {
    // SAFETY: Numba holds the GIL, and a reference to each argument for as long as the call.
    unsafe { with(object, taken) }
}

extern "C" fn leave(cursor: *mut Cursor) {
    // SAFETY: from `enter`, and the call is over; Numba holds the GIL.
    unsafe { give_back(cursor) };
}

/// A buffer that the threads of a loop in parallel share.
#[pyclass(frozen, subclass, module = "firsttouch._firsttouch")]
pub struct NumbaBuffers {
    #[pyo3(get)]
    buffer: Py<PyBuffer>,
    threads: usize,
}

#[pymethods]
impl NumbaBuffers {
    #[new]
    fn new(buffer: Py<PyBuffer>, threads: usize) -> Self {
        Self { buffer, threads }
    }
}

/// The cursors of a call, by the numbers of its threads.
type Cursors = Vec<*mut Cursor>;

extern "C" fn enter_all(object: *mut ffi::PyObject) -> *mut Cursors {
    let enter = |buffers: &Bound<'_, NumbaBuffers>| {
        let buffer = buffers.get().buffer.bind(buffers.py());
        let mut cursors = Cursors::new();
        for _ in 0..buffers.get().threads {
            // SAFETY: these are from `taken`, and nobody has used them; the thread is attached.
            cursors
                .push(taken(buffer).inspect_err(|_| cursors.iter().for_each(|&cursor| unsafe { give_back(cursor) }))?);
        }
        Ok(Box::into_raw(Box::new(cursors)))
    };
    // SAFETY: Numba holds the GIL, and a reference to each argument for as long as the call.
    unsafe { with(object, enter) }
}

extern "C" fn leave_all(cursors: *mut Cursors) {
    // SAFETY: from `enter_all`, and the call is over; Numba holds the GIL.
    let (cursors, py) = unsafe { (Box::from_raw(cursors), Python::assume_attached()) };
    let mut failed = None;
    for cursor in *cursors {
        // SAFETY: `enter_all` took the cursor, and the call that used it is over.
        unsafe {
            failed = (*cursor).failed.take().or(failed);
            give_back(cursor);
        }
    }
    // An exception that is already set is that of the loop's part in this thread.
    if let Some(failure) = failed.filter(|_| !PyErr::occurred(py)) {
        failure.error().restore(py);
    }
}

/// The cursor of the thread with a number.
extern "C" fn local(cursors: *const Cursors, number: usize) -> *mut Cursor {
    // SAFETY: from `enter_all`, and its call lasts. The numbers of threads that run at a time differ.
    let found = unsafe { &*cursors }.get(number).copied();
    found.unwrap_or_else(|| {
        Failure::Memory(format!("thread {number} of Numba's came after the buffers were made, and has none")).put();
        null_mut()
    })
}

/// Takes the address of Numba's `NRT_get_api`, and gives the addresses of the functions that compiled code calls.
#[pyfunction]
pub fn numba_setup(get_api: usize) -> [(&'static str, usize); 9] {
    // SAFETY: Numba names the address as that of its function of this type.
    let get_api = unsafe { transmute::<*const c_void, extern "C" fn() -> *mut Api>(with_exposed_provenance(get_api)) };
    API.store(get_api(), Ordering::Release);
    [
        ("firsttouch_numba_allocate", (allocate as *const ()).expose_provenance()),
        ("firsttouch_numba_mark", (mark as *const ()).expose_provenance()),
        ("firsttouch_numba_rewind", (rewind as *const ()).expose_provenance()),
        ("firsttouch_numba_object", (object as *const ()).expose_provenance()),
        ("firsttouch_numba_enter", (enter as *const ()).expose_provenance()),
        ("firsttouch_numba_leave", (leave as *const ()).expose_provenance()),
        ("firsttouch_numba_enter_all", (enter_all as *const ()).expose_provenance()),
        ("firsttouch_numba_leave_all", (leave_all as *const ()).expose_provenance()),
        ("firsttouch_numba_local", (local as *const ()).expose_provenance()),
    ]
}

/// Why a call of compiled code failed. Such code can raise exceptions, but only of a constant class without arguments: that class
/// gives what stands here, in the same thread.
#[derive(Clone)]
pub enum Failure {
    Memory(String),
    /// A shape or a mark is not valid.
    Value(String),
}

impl Failure {
    pub fn error(self) -> PyErr {
        match self {
            Self::Memory(text) => PyMemoryError::new_err(text),
            Self::Value(text) => PyValueError::new_err(text),
        }
    }

    /// Keeps it for the exception of this thread.
    pub fn put(self) {
        LAST.with_borrow_mut(|last| **last = Some(self));
    }
}

impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Self {
        failure::pass_on(error); // with the reason that an upstream in Python gave
        Self::Memory(failure::last_reason().unwrap_or_else(|| error.to_string()))
    }
}

thread_local! {
    /// It is not dropped with its thread: glibc ends the process where it has no memory to note that it has to be.
    static LAST: RefCell<ManuallyDrop<Option<Failure>>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// The exception for the last failure of compiled code in this thread.
#[pyfunction]
pub fn numba_failure(py: Python<'_>) -> Py<PyAny> {
    let failure = LAST.with_borrow(|last| (**last).clone());
    let error = failure.map_or_else(|| PyRuntimeError::new_err("compiled code did not fail here"), Failure::error);
    error.into_value(py).into_any()
}
