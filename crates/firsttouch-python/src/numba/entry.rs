//! The ways into compiled code and out of it, and the functions that it calls.
//!
//! A call from Python is a scope of its own. The functions that compiled code calls need no interpreter: loops in parallel
//! run without it.

#![allow(unsafe_code)] // Safety: compiled code passes the cursors that it got on entry, during the same call.

use crate::numba::cursor::{Cursor, MarkFrame};
use crate::numba::failure::Failure;
use crate::python::callback;
use crate::python::gil::Guarded;
use crate::python::values::{PyMemoryError, PyRuntimeError, PyValueError};
use crate::scratch::buffer::PyBuffer;
use firsttouch::fork::forks;
use firsttouch::scratch::Buffer;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The number of this thread in compiled code.
pub extern "C" fn thread() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let number: usize;
        // SAFETY: reads the thread pointer, whose first word is its own address on Linux.
        unsafe { std::arch::asm!("mov {}, fs:0", out(reg) number, options(nostack, readonly, preserves_flags)) };
        number
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        thread_local!(static HERE: u8 = const { 0 });
        HERE.with(|here| std::ptr::from_ref(here).expose_provenance())
    }
}

/// The cursor, if this thread may use it.
///
/// # Safety
/// Compiled code has the cursor from `enter` or from a list of them, and its call lasts.
unsafe fn mine<'a>(cursor: *mut Cursor) -> Result<&'a mut Cursor, Failure> {
    // SAFETY: the cursor is from `enter` or a list of them, and its call lasts (compiled code, by `attempt`); the owner
    // is a plain word that only a thread itself sets to its own number.
    match unsafe { (&raw const (*cursor).owner).read_volatile() } {
        // SAFETY: no other thread uses it while this one is its owner.
        owner if owner == thread() => Ok(unsafe { &mut *cursor }),
        _ => Err(Failure::thread(
            "this scratch buffer is in use by another thread, or its call is over: give each thread a buffer of its own, and \
             a loop in parallel (prange) a firsttouch.numba.ThreadBuffers",
        )),
    }
}

/// Does something with a cursor; the code of the failure, kept for its exception.
///
/// # Safety
/// As for `mine`.
unsafe fn attempt<T>(cursor: *mut Cursor, run: impl FnOnce(&mut Cursor) -> Result<T, Failure>) -> Result<T, i32> {
    // SAFETY: the cursor is from `enter` or a list of them, and its call lasts (compiled code).
    let cursor = unsafe { mine(cursor) }.map_err(Failure::put)?;
    run(cursor).map_err(|failure| {
        if cursor.caller != thread() {
            cursor.failed = Some(failure.clone()); // Numba would not report it
        }
        failure.put()
    })
}

extern "C" fn allocate(cursor: *mut Cursor, size: usize) -> usize {
    // SAFETY: the cursor is from `enter`, and its call lasts (compiled code, head of the file).
    unsafe { attempt(cursor, |cursor| cursor.allocate(size)) }.unwrap_or(0)
}

extern "C" fn mark(cursor: *mut Cursor) -> *mut MarkFrame {
    // SAFETY: the cursor is from `enter`, and its call lasts (compiled code, head of the file).
    unsafe { attempt(cursor, Cursor::open) }.unwrap_or(null_mut())
}

extern "C" fn rewind(cursor: *mut Cursor, frame: *mut MarkFrame, generation: usize) -> i32 {
    // SAFETY: the cursor is from `enter`, and its call lasts (compiled code, head of the file).
    unsafe { attempt(cursor, |cursor| cursor.rewind(frame, generation)) }.err().unwrap_or(0)
}

extern "C" fn failure_code() -> i32 {
    Failure::last().code()
}

/// Fails for a shape of which there can be no array.
extern "C" fn bad_shape(cursor: *mut Cursor, lengths: *const isize, count: usize, itemsize: isize) {
    // SAFETY: compiled code passes an array of that many lengths.
    let lengths = unsafe { std::slice::from_raw_parts(lengths, count) };
    let shape: Vec<String> = lengths.iter().map(ToString::to_string).collect();
    let shape = format!("({}{})", shape.join(", "), if count == 1 { "," } else { "" });
    let failure = Failure::shape(if lengths.iter().any(|&length| length < 0) {
        format!("negative dimensions are not allowed: {shape}")
    } else {
        format!("no address space holds an array of shape {shape} with items of {itemsize} bytes")
    });
    // SAFETY: the cursor is from `enter`, and its call lasts (compiled code, head of the file).
    let _ = unsafe { attempt(cursor, |_| Err::<(), _>(failure)) };
}

/// A new reference to a cursor's buffer.
extern "C" fn object(cursor: *mut Cursor) -> *mut ffi::PyObject {
    // SAFETY: called with the GIL held; the object owns the cursor, so both live.
    unsafe { ffi::Py_NewRef((*cursor).object) }
}

/// The calls of compiled code with a buffer, and its cursor, made by the first.
#[derive(Default)]
pub struct Calls {
    cursor: AtomicPtr<Cursor>,
    calls: Guarded<RunningCalls>,
}

/// The calls of compiled code that run.
#[derive(Default)]
struct RunningCalls {
    /// How many frames of the cursor were open when each began, the innermost last.
    frames: Vec<usize>,
    /// Python's identifier of the thread that runs them, by which its name is found.
    ident: usize,
    /// The same thread by our number, which goes on in a child that it forks, and the number of forks before its process.
    /// The system's numbers of threads do not tell: a child gives those of its parent's other threads to new ones.
    user: (u64, u32),
}

impl Calls {
    /// A call of compiled code begins.
    pub fn enter(&self, owner: &Bound<'_, PyAny>, buffer: &Arc<Buffer>) -> PyResult<*mut Cursor> {
        let mut calls = self.calls.lock(owner.py());
        // SAFETY: no more than asking for the number of this thread.
        let here = unsafe { libc::pthread_self() } as usize;
        let now = (firsttouch::sync::thread(), forks());
        let is_other = !calls.frames.is_empty() && calls.user.0 != now.0;
        if is_other && calls.user.1 != now.1 {
            // This is a forked child, without the thread that ran them: its cursor stays as it was in the middle of that.
            calls.frames.clear();
            self.cursor.store(null_mut(), Relaxed);
        } else if is_other {
            let user = calls.ident;
            drop(calls); // the text is Python's
            return Err(PyRuntimeError::new_err(in_use(owner.py(), user, here)));
        }
        if self.cursor.load(Relaxed).is_null() {
            self.cursor.store(Box::into_raw(Box::new(Cursor::new(buffer.clone(), owner.as_ptr()))), Relaxed);
        }
        let address = self.cursor.load(Relaxed);
        // SAFETY: made above, dropped with the buffer; no other thread uses it, as none but this one runs calls.
        let cursor = unsafe { &mut *address };
        let place = cursor.depth();
        cursor.open().map_err(|_| PyMemoryError::new_err("no memory is left to enter a buffer"))?;
        (calls.ident, calls.user) = (here, now);
        cursor.owner = thread();
        cursor.caller = cursor.owner;
        calls.frames.push(place);
        Ok(address)
    }

    /// The innermost call ends.
    pub fn leave(&self, py: Python<'_>) {
        // SAFETY: used by this thread, which runs the calls: no other enters while there are any.
        let Some(cursor) = (unsafe { self.cursor.load(Relaxed).as_mut() }) else { return };
        let (innermost, is_last) = {
            let calls = self.calls.lock(py);
            (calls.frames.last().copied(), calls.frames.len() == 1)
        };
        // Not under the lock: an upstream may run code of its own.
        if let Some(place) = innermost {
            cursor.close(place);
        }
        if is_last {
            cursor.empty();
            cursor.owner = 0;
        }
        self.calls.lock(py).frames.pop();
    }
}

impl Drop for Calls {
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

fn enter_buffer(buffer: &Bound<'_, PyBuffer>) -> PyResult<*mut Cursor> {
    buffer.get().compiled.enter(buffer.as_any(), buffer.get().buffer())
}

/// Runs with an argument of a type; `None` if an exception was set.
///
/// # Safety
/// The GIL is held, and the object is live.
unsafe fn with<T, R>(object: *mut ffi::PyObject, run: impl FnOnce(&Bound<'_, T>) -> PyResult<R>) -> Option<R>
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
            buffer.get().compiled.leave(buffer.py());
            Ok(())
        })
    };
}

/// A buffer for each thread of a loop in parallel.
#[pyclass(frozen, subclass, module = "firsttouch._firsttouch")]
pub struct NumbaBuffers {
    buffers: Vec<Py<PyBuffer>>,
    /// Their cursors, once entered.
    cursors: Vec<AtomicPtr<Cursor>>,
    /// The failure of a thread other than the caller's, which Numba would not report.
    failed: Mutex<Option<Failure>>,
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
            buffer.get().compiled.leave(py);
        }
    }

    /// Takes the failure of another thread; the buffers are still entered.
    fn take_failure(&self) -> Option<Failure> {
        let taken = |slot: &AtomicPtr<Cursor>| {
            // SAFETY: entered, and the loop is over: no other thread uses it.
            unsafe { slot.load(Relaxed).as_mut() }.and_then(|cursor| cursor.failed.take())
        };
        let own = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.cursors.iter().filter_map(taken).last().or(own)
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
            failure.filter(|_| !PyErr::occurred(py)).map_or(Ok(()), |failure| Err(failure.error(py)))
        })
    };
}

/// The buffer of the thread with a number, which uses it from now on.
extern "C" fn local(buffers: *const NumbaBuffers, number: usize) -> *mut Cursor {
    // SAFETY: entered, and the call that did so lasts.
    let buffers = unsafe { &*buffers };
    let Some(slot) = buffers.cursors.get(number) else {
        let count = buffers.cursors.len();
        let failure =
            Failure::thread(format!("there are {count} buffers, and thread {number} (from 0) has none: make more"));
        *buffers.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.clone());
        failure.put();
        return null_mut();
    };
    let cursor = slot.load(Relaxed);
    // SAFETY: numbers of threads that run at a time differ, so no other thread uses this cursor.
    unsafe { (*cursor).owner = thread() };
    cursor
}

/// Names and addresses for the linker of compiled code.
pub fn symbols() -> [(&'static str, usize); 12] {
    [
        ("firsttouch_numba_allocate", (allocate as *const ()).expose_provenance()),
        ("firsttouch_numba_mark", (mark as *const ()).expose_provenance()),
        ("firsttouch_numba_rewind", (rewind as *const ()).expose_provenance()),
        ("firsttouch_numba_thread", (thread as *const ()).expose_provenance()),
        ("firsttouch_numba_bad_shape", (bad_shape as *const ()).expose_provenance()),
        ("firsttouch_numba_object", (object as *const ()).expose_provenance()),
        ("firsttouch_numba_failure_code", (failure_code as *const ()).expose_provenance()),
        ("firsttouch_numba_enter", (enter as *const ()).expose_provenance()),
        ("firsttouch_numba_leave", (leave as *const ()).expose_provenance()),
        ("firsttouch_numba_enter_all", (enter_all as *const ()).expose_provenance()),
        ("firsttouch_numba_leave_all", (leave_all as *const ()).expose_provenance()),
        ("firsttouch_numba_local", (local as *const ()).expose_provenance()),
    ]
}
