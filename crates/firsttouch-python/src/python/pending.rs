//! An exception that is on its way while an array ends: it is put aside while functions of others run, which may be Python's.
//! ctypes would take it for one of its own, and the interpreter would miss it (`SystemError`).

#![allow(unsafe_code)] // Safety: a function of every interpreter, looked up by its name, says whether this thread is attached.

use pyo3::ffi::PyThreadState;
use pyo3::prelude::*;
use std::ffi::c_void;
use std::sync::OnceLock;

type Current = unsafe extern "C" fn() -> *mut PyThreadState;

/// Whether this thread is attached to the interpreter. What may be asked of an abi3 module ends the process where it is not,
/// and to attach would wait for the GIL, whose holder may be waiting for this thread.
fn is_attached() -> bool {
    static CURRENT: OnceLock<Option<Current>> = OnceLock::new();
    let current = CURRENT.get_or_init(|| {
        #[cfg(unix)]
        // SAFETY: looks names up, the one since CPython 3.13 and the one before; both have this type, where they exist.
        unsafe {
            let find = |name: &std::ffi::CStr| libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            let found = [c"PyThreadState_GetUnchecked", c"_PyThreadState_UncheckedGet"].map(find);
            found.into_iter().find_map(|found| std::mem::transmute::<*mut c_void, Option<Current>>(found))
        }
        #[cfg(not(unix))]
        None
    });
    // SAFETY: reads a pointer of this thread, and has no preconditions.
    current.is_some_and(|current| unsafe { !current().is_null() })
}

/// Looks the function up, with the GIL held: a child that is forked while a thread does it would wait for ever.
pub fn prepare() {
    let _ = is_attached();
}

/// Calls what may run Python, with this thread's exception put aside.
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
