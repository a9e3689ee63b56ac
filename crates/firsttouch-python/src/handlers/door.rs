//! The door through which arrays of every thread reach the front: the pointer in NumPy's default capsule.
//!
//! NumPy offers no other way. What is no array comes by `raw.rs`.

#![allow(unsafe_code)] // Safety: what stands there is checked before it is believed, and lives for ever.

use crate::handlers::handler::{Handler, NUMPYS_NAME};
use crate::numpy::{Functions, NumPy, RawHandler, handler_in};
use crate::python::values::UnsupportedError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::sync::OnceLock;

/// NumPy's own default handler, as first seen.
static NUMPYS: OnceLock<NumPyDefault> = OnceLock::new();

struct NumPyDefault(*const RawHandler, Functions);
// SAFETY: NumPy's default handler is static and read only.
unsafe impl Send for NumPyDefault {}
// SAFETY: as above.
unsafe impl Sync for NumPyDefault {}

/// What serves where the front does not: NumPy's own handler, or the front itself where it stands there already.
///
/// Fails where something else stands there: other functions than those of NumPy's own library, or another version.
pub fn behind(py: Python<'_>, front: Option<&Handler>) -> PyResult<(*const RawHandler, Functions)> {
    let numpy = NumPy::get(py)?;
    let raw = handler_in(&numpy.default_capsule(py))?.cast_const();
    // SAFETY: a capsule of this name holds a handler, whose first fields have not changed since NumPy 1.22; `version`
    // is checked before the functions are believed.
    let handler = unsafe { &*raw };
    let name = handler.name();
    let is_front = front.is_some_and(|front| std::ptr::eq(front.raw(), raw));
    if is_front || (handler.version == 1 && name == NUMPYS_NAME && numpy.owns(&handler.allocator)) {
        return Ok((raw, handler.allocator));
    }
    Err(UnsupportedError::new_err(format!(
        "NumPy's default memory handler is {name:?}, version {}, where firsttouch expects NumPy's own {NUMPYS_NAME:?}, \
         version 1: something else stands there, and is left alone",
        handler.version
    )))
}

/// Puts the front there: one pointer store.
///
/// # Safety
/// The front lives for ever, passes on what it does not serve to what was behind, and frees each block through the handler
/// that made it (law 4).
pub unsafe fn put(py: Python<'_>, front: &'static Handler) -> PyResult<()> {
    let capsule = NumPy::get(py)?.default_capsule(py);
    // SAFETY: the capsule is NumPy's, and the front does what is asked above (`front.rs`).
    match unsafe { ffi::PyCapsule_SetPointer(capsule.as_ptr(), front.raw().cast_mut().cast()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(py)),
    }
}

fn numpys(py: Python<'_>) -> PyResult<&'static NumPyDefault> {
    if let Some(found) = NUMPYS.get() {
        return Ok(found);
    }
    let (raw, functions) = behind(py, None)?;
    Ok(NUMPYS.get_or_init(|| NumPyDefault(raw, functions)))
}

/// The functions of NumPy's own handler.
pub fn numpys_functions(py: Python<'_>) -> PyResult<Functions> {
    Ok(numpys(py)?.1)
}

/// Whether a handler is NumPy's own.
pub fn is_numpys(py: Python<'_>, raw: *const RawHandler) -> bool {
    numpys(py).is_ok_and(|own| std::ptr::eq(own.0, raw))
}
