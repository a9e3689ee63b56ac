//! Prefaults that take long run without the GIL, and signals are answered meanwhile.
//!
//! NumPy replaces errors of its handlers by its own. So when a signal's handler raises (Ctrl-C), the prefault ends, the
//! array gets its memory as it is, and the exception is raised as soon as the interpreter goes on.

#![allow(unsafe_code)] // Safety: an exception waits in a list until the interpreter calls for it.

use firsttouch::memory::touch::{self, GoOn};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

static RAISED: Mutex<Vec<PyErr>> = Mutex::new(Vec::new());

/// Called by the interpreter in its main thread, with the GIL: raises what a signal's handler raised before.
extern "C" fn raise(_: *mut c_void) -> c_int {
    let error = RAISED.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let raised = error.and_then(|error| Python::try_attach(|py| error.restore(py)));
    if raised.is_some() { -1 } else { 0 }
}

fn raise_later(error: PyErr) {
    RAISED.lock().unwrap_or_else(PoisonError::into_inner).push(error);
    // SAFETY: may be called from any thread. Where the queue is full the exception is raised with the next one.
    unsafe { ffi::Py_AddPendingCall(Some(raise), null_mut()) };
}

/// Whether the work may go on: no signal's handler raised.
fn unbothered(_done: usize) -> bool {
    Python::try_attach(|py| py.check_signals().map_err(raise_later).is_ok()).unwrap_or(true)
}

/// What must not be checked for crossing threads: it does not, the work runs in this very thread.
struct Here<'a>(&'a mut dyn FnMut(GoOn<'_>));
// SAFETY: `detach` calls its closure in the same thread.
unsafe impl Send for Here<'_> {}

impl Here<'_> {
    fn run(self) {
        (self.0)(&mut unbothered);
    }
}

fn around(work: &mut dyn FnMut(GoOn<'_>)) {
    let work = Here(work);
    Python::try_attach(|py| py.detach(move || work.run()));
}

pub fn set_up() {
    touch::set_around(around);
}
