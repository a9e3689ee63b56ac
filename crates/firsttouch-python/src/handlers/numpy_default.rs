//! NumPy's default handler, as this copy first saw it and now, and how handlers in front of it are named.

#![allow(unsafe_code)] // Safety: handlers that stand there live for ever, and are checked before they are believed.

use crate::numpy::abi::{Functions, RawHandler, handler_in};
use crate::numpy::c_api::NumPy;
use crate::python::errors::UnsupportedError;
use crate::python::guarded::Guarded;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_char;
use std::sync::OnceLock;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

/// NumPy's own default handler, as first seen.
static BEHIND: OnceLock<NumPyDefault> = OnceLock::new();
/// The recorder's handler, once it stands in the capsule.
static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// Held by whoever looks at what stands in NumPy's default capsule in order to put another handler there, and by whoever
/// changes which allocator serves the process: each sets several words.
static CAPSULE: Guarded<()> = Guarded::new(());

/// Keeps other threads from changing what serves the process, until the guard is dropped.
pub fn capsule_lock(py: Python<'_>) -> impl Sized + '_ {
    CAPSULE.lock(py)
}

struct NumPyDefault(*const RawHandler, Functions);
// SAFETY: NumPy's default handler is static and read only.
unsafe impl Send for NumPyDefault {}
// SAFETY: as above.
unsafe impl Sync for NumPyDefault {}

/// A handler that passes everything on, and stays in the capsule from then on.
struct Recorder {
    raw: *const RawHandler,
    /// Who serves behind it.
    next: &'static AtomicPtr<RawHandler>,
}
// SAFETY: the handler is never dropped, and `next` is atomic.
unsafe impl Send for Recorder {}
// SAFETY: as above.
unsafe impl Sync for Recorder {}

/// Notes that the recorder's handler stands in the capsule; what serves behind it is in `next`.
pub fn set_recorder(raw: *const RawHandler, next: &'static AtomicPtr<RawHandler>) {
    let _ = RECORDER.set(Recorder { raw, next });
}

/// Lets a handler serve behind the recorder's, which stays in front; whether there is one.
pub fn insert_behind_recorder(next: *const RawHandler) -> bool {
    let recorder = RECORDER.get();
    if let Some(recorder) = recorder {
        recorder.next.store(next.cast_mut(), Release);
    }
    recorder.is_some()
}

/// Who serves behind the recorder, if that is what `raw` is.
fn behind_recorder(raw: *const RawHandler) -> Option<*const RawHandler> {
    let recorder = RECORDER.get().filter(|recorder| std::ptr::eq(recorder.raw, raw))?;
    Some(recorder.next.load(Acquire))
}

/// Puts a handler into NumPy's default capsule: the one pointer store that reaches every thread.
///
/// # Safety
/// The handler lives for ever, has all its functions, and frees each block through the handler that made it (law 4).
pub unsafe fn put_in_capsule(py: Python<'_>, raw: *const RawHandler) -> PyResult<()> {
    let capsule = NumPy::get(py)?.default_capsule(py);
    // SAFETY: the capsule is NumPy's; what its pointer leads to is a handler that lives for ever and finds each block's
    // maker (`front.rs`, `recorder_handler.rs`).
    match unsafe { ffi::PyCapsule_SetPointer(capsule.as_ptr(), raw.cast_mut().cast()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(py)),
    }
}

/// What stands behind NumPy's default capsule now, checked: NumPy's own handler, whose functions lie in NumPy's own
/// library, or a front of this package, perhaps another copy's.
pub fn behind_now(py: Python<'_>) -> PyResult<(*const RawHandler, Functions)> {
    let numpy = NumPy::get(py)?;
    let raw = handler_in(&numpy.default_capsule(py))?.cast_const();
    let raw = behind_recorder(raw).unwrap_or(raw);
    // SAFETY: a capsule of this name holds a handler, whose first fields have not changed since NumPy 1.22; `version`
    // is checked before the functions are believed.
    let handler = unsafe { &*raw };
    let name = handler.name();
    // SAFETY: as above.
    match unsafe { RawHandler::load_allocator(raw) }.functions() {
        Some(functions)
            if handler.version == 1 && name == NUMPY_NAME && (is_front(handler) || numpy.owns(&functions)) =>
        {
            Ok((raw, functions))
        }
        _ => Err(UnsupportedError::new_err(format!(
            "NumPy's default memory handler is {name:?}, version {}, where firsttouch expects NumPy's own \
             {NUMPY_NAME:?}, version 1: something else stands there, and is left alone",
            handler.version
        ))),
    }
}

fn checked(py: Python<'_>) -> PyResult<&'static NumPyDefault> {
    if let Some(found) = BEHIND.get() {
        return Ok(found);
    }
    let (raw, functions) = behind_now(py)?;
    Ok(BEHIND.get_or_init(|| NumPyDefault(raw, functions)))
}

/// What stood behind NumPy's default capsule when this copy first looked.
pub fn behind(py: Python<'_>) -> PyResult<*const RawHandler> {
    Ok(checked(py)?.0)
}

/// The functions of what stood behind NumPy's default capsule when this copy first looked.
pub fn next(py: Python<'_>) -> PyResult<Functions> {
    Ok(checked(py)?.1)
}

/// The name of a context's handler. Behind the name's end it stands in every handler, so that copies of this package
/// know each other.
pub const NAME: &str = "firsttouch";
/// The name of NumPy's default handler. The one that stands in front of it carries it too: there are programs, NumPy's
/// own tests among them, that know the default by its name.
pub const NUMPY_NAME: &str = "default_allocator";

/// A handler's name, with ours behind its end.
pub fn names(name: &str) -> [c_char; 127] {
    let mut bytes = [0; 127];
    for (to, from) in bytes.iter_mut().zip(name.bytes().chain([0]).chain(NAME.bytes())) {
        *to = from as c_char;
    }
    bytes
}

/// Whether a handler is a front of this package, of this copy or another.
pub fn is_front(raw: &RawHandler) -> bool {
    let bytes: Vec<u8> = raw.name.iter().map(|&c| c as u8).collect();
    let parts: Vec<&[u8]> = bytes.split(|&c| c == 0).take(2).collect();
    parts == [NUMPY_NAME.as_bytes(), NAME.as_bytes()]
}
