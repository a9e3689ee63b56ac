//! Long work: it runs without the GIL, signals are handled meanwhile, and a progress bar may be shown.
//!
//! NumPy replaces errors of its handlers by its own. So when a signal's handler raises (Ctrl-C), a prefault ends, the
//! array gets its memory as it is, and the exception is raised as soon as the interpreter goes on: by our constructors,
//! which give the array back, or by the interpreter itself.

#![allow(unsafe_code)] // Safety: an exception waits in a list until the interpreter calls for it.

use firsttouch::pages::touch::{self, GoOn};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

/// Makes a bar for so many bytes: called with the bytes done so far.
static BAR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
/// What signals' handlers and bars raised during prefaults that nobody has raised yet, and in which thread.
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

/// Shows how far the work is and answers signals; an exception of either.
fn asked(py: Python<'_>, bar: Option<&Py<PyAny>>, done: usize) -> PyResult<()> {
    py.check_signals()?;
    bar.map_or(Ok(()), |bar| bar.call1(py, (done,)).map(drop))
}

/// What must not be checked for crossing threads: it does not, the work runs in this very thread.
struct Here<'a>(&'a mut dyn FnMut(GoOn<'_>));
// SAFETY: `detach` calls its closure in the same thread.
unsafe impl Send for Here<'_> {}

impl Here<'_> {
    fn run(self, bar: Option<&Py<PyAny>>) {
        (self.0)(&mut |done| {
            Python::try_attach(|py| asked(py, bar, done).map_err(raise_later).is_ok()).unwrap_or(true)
        });
    }
}

fn around(shown: Option<usize>, work: &mut dyn FnMut(GoOn<'_>)) {
    let work = Here(work);
    Python::try_attach(|py| {
        let bar = shown.and_then(|nbytes| Some((BAR.get(py)?.call1(py, (nbytes,)).ok()?, nbytes)));
        py.detach(|| work.run(bar.as_ref().map(|(bar, _)| bar)));
        if let Some((bar, nbytes)) = &bar
            && !ANY.load(Relaxed)
        {
            let _ = asked(py, Some(bar), *nbytes).map_err(raise_later);
        }
    });
}

/// Runs work without the GIL; signals are answered, and an exception that they or the bar raise ends it.
pub fn interruptible<T: Send>(bar: Option<Py<PyAny>>, work: &mut (dyn FnMut(GoOn<'_>) -> T + Send)) -> PyResult<T> {
    Python::attach(|py| {
        let mut raised = None;
        let result = py.detach(|| {
            work(&mut |done| {
                Python::attach(|py| asked(py, bar.as_ref(), done)).map_err(|error| raised = Some(error)).is_ok()
            })
        });
        raised.map_or(Ok(result), Err)
    })
}

/// Gives what makes bars.
#[pyfunction]
fn set_bar(py: Python<'_>, bar: Py<PyAny>) {
    let _ = BAR.set(py, bar);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    touch::set_around(around);
    module.add_function(wrap_pyfunction!(set_bar, module)?)
}
