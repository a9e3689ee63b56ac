//! What the other modules know of Python: exceptions that can be made where memory is out, the GIL, the lines that call, and
//! functions of the package.

#![allow(unsafe_code)] // Safety: work that is done in the thread that asks for it, and symbols of a known type.

pub mod call_sites;
pub mod gil;
pub mod values;

use crate::handlers::raw;
use firsttouch::os;
use firsttouch::pages::touch;
use firsttouch::sync::OnceBox;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::CStr;
use std::mem::transmute_copy;
use values::PyRuntimeError;

/// Functions of the Python package that this module calls, registered once when the package is imported. The module imports none of
/// them itself: an import in the middle of a call takes a lock, reads files, and runs code at a moment that nobody chose.
static CALLBACKS: OnceBox<Py<PyDict>> = OnceBox::new();

/// The function registered under this name.
pub fn callback<'py>(py: Python<'py>, name: &'static str) -> PyResult<Bound<'py, PyAny>> {
    let found = CALLBACKS.get().map(|all| all.bind(py).get_item(name)).transpose()?.flatten();
    found.ok_or_else(|| {
        PyRuntimeError::new_err(format!("the package has not registered {name}() with its native module"))
    })
}

/// Registers functions by their names; a name that is registered again is replaced.
pub fn add(py: Python<'_>, functions: &Bound<'_, PyDict>) -> PyResult<()> {
    CALLBACKS.get_or_init(|| Box::new(PyDict::new(py).unbind())).bind(py).update(functions.as_mapping())
}

/// A function of CPython's that its stable interface leaves out, if this Python has it.
///
/// # Safety
/// It has this type.
pub unsafe fn symbol<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    // SAFETY: as demanded; a function pointer is an address.
    os::symbol(name).map(|found| unsafe { transmute_copy(&found) })
}

/// Work that must not be checked for crossing threads: it does not.
struct Here<'a>(&'a mut dyn FnMut());
// SAFETY: `detach` calls its closure in the same thread.
unsafe impl Send for Here<'_> {}

/// Lets other threads of the interpreter run during long work for an array.
fn detach(work: &mut dyn FnMut()) {
    if raw::passes() {
        return;
    }
    let work = Here(work);
    Python::try_attach(|py| {
        py.detach(|| {
            let Here(work) = { work };
            work();
        });
    });
}

pub fn begin(py: Python<'_>) -> PyResult<()> {
    touch::set_detach(detach);
    values::begin(py)?;
    gil::look_up(py)
}
