//! Capsules through which NumPy knows a handler: a context's, a scope's, and the direct one of our constructors.

#![allow(unsafe_code)] // Safety: capsules own their handlers and are kept by the arrays made through them.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::process_pool::{process_pool, small_limit};
use crate::handlers::c_library;
use crate::handlers::entry_points::{from_raw, new_handler, new_scope_handler};
use crate::handlers::front::ensure_front;
use crate::handlers::handler::{Charge, Handler, Kind};
use crate::handlers::numpy_default::{behind, next};
use crate::numpy::abi::{CAPSULE, RawHandler, handler_in};
use crate::numpy::c_api::NumPy;
use crate::python::errors::PyTypeError;
use crate::python::global_allocator::ensure_memory;
use crate::python::immortal::make_immortal;
use crate::python::once::Once;
use firsttouch::allocator::Allocator;
use firsttouch::owners;
use firsttouch::scratch::Scope;
use firsttouch::sync::first::First;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::sync::Arc;

/// NumPy keeps a few blocks below this many bytes.
const NUMPYS_SMALL: usize = 1024;

unsafe extern "C" fn drop_handler(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule was made below around a boxed handler, and its last array is gone.
    unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule, CAPSULE.as_ptr());
        if !pointer.is_null() {
            drop(Box::from_raw(pointer.cast::<Handler>()));
            firsttouch::owners::sweep();
        }
    }
}

fn around(py: Python<'_>, handler: Box<Handler>) -> PyResult<Bound<'_, PyAny>> {
    ensure_front(py);
    let handler = Box::into_raw(handler);
    // SAFETY: the handler's first field is what NumPy expects; the destructor frees the box.
    unsafe {
        let capsule = ffi::PyCapsule_New(handler.cast(), CAPSULE.as_ptr(), Some(drop_handler));
        if capsule.is_null() {
            drop(Box::from_raw(handler));
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// NumPy's own handler as it was before anything was installed, but for one thing: an array may get another's data, so each
/// block is freed by its owner, as by the front.
fn numpys_handler(py: Python<'_>) -> PyResult<&'static Handler> {
    static ONE: First<Box<Handler>> = First::new();
    if let Some(made) = ONE.get() {
        return Ok(made);
    }
    let next = next(py)?;
    Ok(ONE.get_or_make(|| new_handler(Kind::NumPy, process_pool().clone(), usize::MAX, next)))
}

/// Whether a handler is NumPy's own, or the one above.
pub fn is_numpys(py: Python<'_>, raw: *const RawHandler) -> bool {
    // SAFETY: the handler came from a living capsule (`handler_in`).
    let ours = unsafe { from_raw(raw) };
    ours.is_some_and(|handler| handler.kind() == Kind::NumPy) || behind(py).is_ok_and(|own| std::ptr::eq(own, raw))
}

/// A capsule of NumPy's own handler; nobody else's can be had again.
fn numpys<'py>(py: Python<'py>, allocator: &PyAllocator) -> PyResult<Bound<'py, PyAny>> {
    if allocator.is_foreign() {
        return Err(PyTypeError::new_err(format!("{} cannot be used from here", allocator.expression())));
    }
    ensure_front(py);
    // SAFETY: this handler lives for ever, so the capsule needs no destructor.
    unsafe {
        let raw = numpys_handler(py)?.raw().cast_mut();
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(raw.cast(), CAPSULE.as_ptr(), None))
    }
}

/// A pool leaves small arrays to another; whoever names another allocator gets it for every size.
fn small(allocator: &dyn Allocator) -> usize {
    if allocator.small_limit() > 0 && allocator.in_segments() { small_limit() } else { 0 }
}

/// For a context: small arrays of pools come from NumPy.
///
/// Without a GIL the threads of a context share its capsule (they inherit the context). The one of the process's own pool,
/// which is never dropped, is then made once and counts no references. The others end with their allocators, and are counted.
pub fn context<'py>(py: Python<'py>, allocator: &PyAllocator) -> PyResult<Bound<'py, PyAny>> {
    ensure_memory(py)?;
    let Some(native) = allocator.native() else { return numpys(py, allocator) };
    let (small, next) = (small(native.as_ref()), next(py)?);
    let new = || around(py, new_handler(Kind::Context, native.clone(), small, next));
    if !is_shared(native) {
        return new();
    }
    static SHARED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let capsule = SHARED.get_or_make(py, || new().map(immortal))?.bind(py);
    if let Some(handler) = handler(capsule)?.filter(|handler| handler.small() != small) {
        handler.set_small(small);
    }
    Ok(capsule.clone())
}

/// Whether the allocator has one capsule for all threads.
fn is_shared(native: &Arc<dyn Allocator>) -> bool {
    cfg!(Py_GIL_DISABLED) && Arc::ptr_eq(native, process_pool())
}

/// A capsule that was just made, for an allocator that lives as long as the process.
fn immortal(capsule: Bound<'_, PyAny>) -> Py<PyAny> {
    // SAFETY: nobody else has it yet, and the collector tracks no capsule that has no references of its own.
    unsafe { make_immortal(&capsule) };
    capsule.unbind()
}

/// For our constructors. The capsule of an allocator that is kept anyway counts no references: all threads share it.
fn new_direct(py: Python<'_>, native: &Arc<dyn Allocator>, is_kept: bool) -> PyResult<Py<PyAny>> {
    let new = || make_direct(py, native);
    if is_shared(native) {
        static SHARED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        return Ok(SHARED.get_or_make(py, || new().map(immortal))?.clone_ref(py));
    }
    new().map(|capsule| if is_kept { immortal(capsule) } else { capsule.unbind() })
}

fn make_direct<'py>(py: Python<'py>, native: &Arc<dyn Allocator>) -> PyResult<Bound<'py, PyAny>> {
    ensure_memory(py)?;
    // Adaptors count, bound or guard what they are asked for: they see small arrays, too.
    let small = if owners::keeps_list(native.as_ref()) { 0 } else { small(native.as_ref()) };
    let handler = new_handler(Kind::Direct, native.clone(), small, c_library::FUNCTIONS);
    around(py, handler)
}

/// For a scope: arrays below NumPy's own small limit stay with NumPy, which keeps a few of them itself.
pub fn of_scope<'py>(py: Python<'py>, scope: &Arc<Scope>, before: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    ensure_memory(py)?;
    around(py, new_scope_handler(scope.clone(), NUMPYS_SMALL, next(py)?, before.clone().unbind()))
}

/// For our constructors: nothing comes from NumPy, and everything is aligned.
pub fn direct<'a, 'py>(py: Python<'py>, allocator: &'a PyAllocator) -> PyResult<&'a Bound<'py, PyAny>> {
    allocator.ensure_open()?;
    let cell = allocator.direct();
    let made = cell.get_or_make(py, || match allocator.native() {
        Some(native) => new_direct(py, native, false),
        None => numpys(py, allocator).map(Bound::unbind),
    })?;
    Ok(made.bind(py))
}

/// The same for the allocator in charge of a handler.
pub fn direct_of<'a, 'py>(py: Python<'py>, charge: &'a Charge) -> PyResult<&'a Bound<'py, PyAny>> {
    Ok(charge.direct.get_or_make(py, || new_direct(py, &charge.allocator, charge.is_kept))?.bind(py))
}

/// How many references an object has. Without a GIL the number is exact if this thread made the object and no other has a
/// reference to it; one that another thread takes or drops meanwhile may or may not be counted.
pub fn references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: the object lives.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}

/// Whether a direct handler belongs to this one.
pub fn has_direct(capsule: &Bound<'_, PyAny>) -> bool {
    let handler = handler(capsule).ok().flatten();
    handler.is_some_and(|handler| handler.charge().direct.get(capsule.py()).is_some())
}

/// Whether an array holds the direct handler that belongs to this one.
pub fn direct_is_known(capsule: &Bound<'_, PyAny>) -> bool {
    let py = capsule.py();
    let handler = handler(capsule).ok().flatten();
    let direct = handler.and_then(|handler| handler.charge().direct.get(py));
    direct.is_some_and(|capsule| references(capsule.bind(py)) > 1)
}

/// The handler in a capsule, if it is one of this copy's and serves from an allocator.
pub fn handler<'a>(capsule: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a Handler>> {
    // SAFETY: the capsule lives as long as the reference and keeps its handler.
    let ours = unsafe { from_raw(handler_in(capsule)?) };
    Ok(ours.filter(|handler| handler.kind() != Kind::NumPy))
}

/// The nearest handler from `capsule` outwards that is no scope's that ended.
pub fn nearest_open<'py>(capsule: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = capsule.py();
    let mut at = capsule;
    if at.is(NumPy::get(py)?.default_capsule(py)) {
        return Ok(at);
    }
    while let Some(before) = ended(&at)? {
        at = before.into_bound(py);
    }
    Ok(at)
}

/// What served before the scope of this capsule, if it is an ended scope's.
fn ended(capsule: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    let handler = handler(capsule)?;
    let scope = handler.and_then(|handler| handler.scope()).filter(|(scope, _)| !scope.serves());
    Ok(scope.map(|(_, before)| before.lock(capsule.py()).clone_ref(capsule.py())))
}
