//! Long work: it runs without the GIL, and signals are handled meanwhile.
//!
//! NumPy replaces errors of its handlers by its own. So when a signal's handler raises (Ctrl-C), a prefault ends, the
//! array gets its memory as it is, and the exception is raised as soon as the interpreter goes on: by our constructors,
//! which give the array back, or by the interpreter itself.

#![allow(unsafe_code)] // Safety: an exception waits in a list until the interpreter calls for it.

use firsttouch::pages::touch::{self, GoOn};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

/// What signals' handlers raised during prefaults that nobody has raised yet, and in which thread.
static RAISED: Mutex<Vec<(ThreadId, PyErr)>> = Mutex::new(Vec::new());
static ANY: AtomicBool = AtomicBool::new(false);

/// Takes what was raised in this thread, or in any, once.
///
/// `ANY` is only a short way past the lock: whoever it misleads takes nothing, and the thread that added an exception
/// reads at least its own store. The lock is held by threads that are attached to the interpreter, and for a few
/// instructions: neither Python code nor a fork meets it.
fn take(in_any: bool) -> Option<PyErr> {
    if !ANY.load(Relaxed) {
        return None;
    }
    let mut waiting = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
    let here = thread::current().id();
    let at = waiting.iter().position(|(thread, _)| in_any || *thread == here)?;
    let (_, error) = waiting.remove(at);
    ANY.store(!waiting.is_empty(), Relaxed);
    Some(error)
}

/// What was raised in this thread during a prefault, once. (Not what was raised in others: their own constructors take
/// it, or the interpreter.)
pub fn raised() -> Option<PyErr> {
    take(false)
}

/// Called by the interpreter in its main thread: raises what nobody has raised yet.
extern "C" fn raise(_: *mut c_void) -> c_int {
    let raised = raised().or_else(|| take(true));
    let raised = raised.and_then(|error| Python::try_attach(|py| error.restore(py)));
    if raised.is_some() { -1 } else { 0 }
}

fn raise_later(error: PyErr) {
    let mut waiting = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.push((thread::current().id(), error));
    ANY.store(true, Relaxed);
    drop(waiting);
    // SAFETY: may be called from any thread. Where the queue is full the exception is raised with the next one.
    unsafe { ffi::Py_AddPendingCall(Some(raise), null_mut()) };
}

/// What must not be checked for crossing threads: it does not, the work runs in this very thread.
struct Here<'a>(&'a mut dyn FnMut(GoOn<'_>));
// SAFETY: `detach` calls its closure in the same thread.
unsafe impl Send for Here<'_> {}

impl Here<'_> {
    fn run(self) {
        (self.0)(&mut |_| Python::try_attach(|py| py.check_signals().map_err(raise_later).is_ok()).unwrap_or(true));
    }
}

fn around(work: &mut dyn FnMut(GoOn<'_>)) {
    let work = Here(work);
    Python::try_attach(|py| py.detach(|| work.run()));
}

/// Runs work without the GIL; signals are answered, and an exception that they raise ends it.
pub fn interruptible<T: Send>(work: &mut (dyn FnMut(GoOn<'_>) -> T + Send)) -> PyResult<T> {
    Python::attach(|py| {
        let mut raised = None;
        let result = py.detach(|| {
            work(&mut |_| Python::attach(|py| py.check_signals()).map_err(|error| raised = Some(error)).is_ok())
        });
        raised.map_or(Ok(result), Err)
    })
}

pub fn register() {
    touch::set_around(around);
}
