//! Capsules through which NumPy knows a handler, the handler of the current context, and which allocator made an array.

#![allow(unsafe_code)] // Safety: capsules own their handlers and are kept by the arrays made through them.

use crate::allocators::allocator::{PyAllocator, process_pool};
use crate::handlers::front::{ensure_front, installed};
use crate::handlers::handler::{Handler, Kind, NUMPYS_SMALL};
use crate::numpy::{CAPSULE, NumPy, handler_in};
use crate::python::values::{PyTypeError, ensure_memory};
use crate::scratch::scope;
use firsttouch::layout::SMALL_LIMIT;
use firsttouch::owners;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ptr::NonNull;
use std::sync::Arc;

unsafe extern "C" fn drop_handler(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule was made below around a boxed handler, and its last array is gone.
    let handler = unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule, CAPSULE.as_ptr());
        if pointer.is_null() {
            return;
        }
        Box::from_raw(pointer.cast::<Handler>())
    };
    // Attached, or PyO3 would keep the capsule that a scope's handler holds until somebody else is.
    let may_be_last = handler.behind().is_none() && Arc::strong_count(handler.allocator()) <= 2;
    let held = &mut Some(handler);
    Python::try_attach(|_| drop(held.take()));
    drop(held.take());
    if may_be_last {
        owners::sweep();
    }
}

fn new_capsule(py: Python<'_>, handler: Box<Handler>) -> PyResult<Bound<'_, PyAny>> {
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

/// The capsule by which a context, or constructors that name the allocator, use it.
pub fn of_allocator<'a, 'py>(py: Python<'py>, allocator: &'a PyAllocator) -> PyResult<&'a Bound<'py, PyAny>> {
    allocator.ensure_open()?;
    let made = allocator.capsule().get_or_try_init(|| {
        ensure_memory(py)?;
        let &(_, next) = NumPy::get(py)?.own_handler(py)?;
        let handler = match allocator.native() {
            // As NumPy's own was before anything was installed, but for one thing: each block is freed by its owner, as an array
            // may get another's data.
            None => Handler::new(Kind::NumPy, process_pool().clone(), SMALL_LIMIT, next),
            Some(native) => Handler::new(Kind::Context, native.clone(), native.small_limit(), next),
        };
        PyResult::Ok(Box::new(new_capsule(py, handler)?.unbind()))
    })?;
    Ok(made.bind(py))
}

/// A capsule for the context of a scope with a number. What no scope serves is served by the handler of the capsule `behind`.
pub fn of_scope<'py>(scope: u64, behind: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the capsule holds a handler, whose first fields have not changed since NumPy 1.22, and the new one keeps it.
    let next = unsafe { (*handler_in(&behind)?).allocator };
    new_capsule(behind.py(), Handler::of_scope(scope, next, behind.unbind()))
}

/// The handler in a capsule, if it is one of ours.
pub fn handler_of<'a>(capsule: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a Handler>> {
    // SAFETY: the capsule lives as long as the reference and keeps its handler.
    Ok(unsafe { Handler::from_raw(handler_in(capsule)?) })
}

/// The handler in a capsule, if it is one of ours and serves from an allocator.
pub fn serving_handler<'a>(capsule: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a Handler>> {
    Ok(handler_of(capsule)?.filter(|handler| handler.kind != Kind::NumPy))
}

/// Who serves a context where no scope does.
pub fn behind_scopes(capsule: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let behind = handler_of(&capsule)?.and_then(|handler| Some(handler.behind()?.bind(capsule.py()).clone()));
    Ok(behind.unwrap_or(capsule))
}

/// The same, unless a scope is open that serves the context.
pub fn nearest_open(capsule: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let scope = handler_of(&capsule)?.map_or(scope::NONE, Handler::scope);
    if scope::is_open(scope) { Ok(capsule) } else { behind_scopes(capsule) }
}

/// Lets `allocator` serve the current context; what served it before, to be put back.
#[pyfunction]
pub fn enter<'py>(py: Python<'py>, allocator: &PyAllocator) -> PyResult<Bound<'py, PyAny>> {
    NumPy::get(py)?.set_current(of_allocator(py, allocator)?)
}

/// Puts back what `enter` returned; where that was a scope that ended meanwhile, what is around it.
#[pyfunction]
pub fn leave(before: &Bound<'_, PyAny>) -> PyResult<()> {
    NumPy::get(before.py())?.set_current(&nearest_open(before.clone())?).map(|_| ())
}

/// The allocator of new arrays in this context, unless another library's handler serves it.
#[pyfunction]
pub fn current(py: Python<'_>) -> PyResult<Option<PyAllocator>> {
    let numpy = NumPy::get(py)?;
    let capsule = numpy.current(py)?;
    let scope = handler_of(&capsule)?.map_or(scope::NONE, Handler::scope);
    if let Some(buffer) = scope::serving(scope, NUMPYS_SMALL) {
        return Ok(Some(PyAllocator::ours(buffer)));
    }
    let capsule = behind_scopes(capsule)?;
    if capsule.is(numpy.default_capsule(py)) {
        return Ok(Some(installed().map_or_else(PyAllocator::numpy, PyAllocator::ours)));
    }
    behind_capsule(&capsule)
}

fn behind_capsule(capsule: &Bound<'_, PyAny>) -> PyResult<Option<PyAllocator>> {
    let (py, raw) = (capsule.py(), handler_in(capsule)?);
    let is_numpys = || NumPy::get(py)?.own_handler(py).map(|own| std::ptr::eq(own.0, raw));
    // SAFETY: the capsule lives as long as the reference and keeps its handler.
    Ok(match unsafe { Handler::from_raw(raw) } {
        Some(handler) if handler.kind != Kind::NumPy => Some(PyAllocator::ours(handler.allocator().clone())),
        Some(_) => Some(PyAllocator::numpy()),
        None => is_numpys().unwrap_or(false).then(PyAllocator::numpy),
    })
}

/// Return the allocator that made an array's memory, or the current one.
///
/// Parameters
/// ----------
/// array : ndarray, optional
///     Array to look up. By default, the allocator that serves new arrays here is returned.
///
/// Returns
/// -------
/// Allocator or None
///     ``None`` if neither NumPy nor firsttouch allocates: a memory map, a buffer or a memory handler of another library.
///
/// Raises
/// ------
/// TypeError
///     If `array` is not a NumPy array.
///
/// Examples
/// --------
/// >>> ft.get_allocator(ft.aligned(4096).empty(10))
/// aligned(4096)
/// >>> ft.get_allocator(np.frombuffer(b"text", "u1")) is None
/// True
#[pyfunction]
#[pyo3(signature = (array=None))]
pub fn get_allocator(py: Python<'_>, array: Option<&Bound<'_, PyAny>>) -> PyResult<Option<PyAllocator>> {
    match array {
        None => current(py),
        Some(array) => of_array(py, NumPy::get(py)?, array),
    }
}

fn of_array(py: Python<'_>, numpy: &NumPy, array: &Bound<'_, PyAny>) -> PyResult<Option<PyAllocator>> {
    if numpy.array(array).is_none() {
        let kind = array.get_type();
        return Err(PyTypeError::new_err(format!(
            "get_allocator() takes a NumPy array, not {}",
            kind.fully_qualified_name()?
        )));
    }
    let owner = numpy.owner(array);
    let Some(fields) = owner.as_ref().and_then(|owner| numpy.array(owner)) else { return Ok(None) };
    // SAFETY: the array lives and keeps a reference to its capsule.
    let capsule = unsafe { Bound::from_borrowed_ptr_or_opt(py, fields.mem_handler) };
    capsule.map_or(Ok(None), |capsule| of_block(numpy, &capsule, NonNull::new(fields.data.cast())))
}

/// Who made the live block that will be given back through `capsule`.
fn of_block(numpy: &NumPy, capsule: &Bound<'_, PyAny>, block: Option<NonNull<u8>>) -> PyResult<Option<PyAllocator>> {
    // SAFETY: the block lives.
    if let Some(made) = block.and_then(|block| unsafe { owners::shared(block) }) {
        return Ok(Some(PyAllocator::ours(made)));
    }
    let is_ours = serving_handler(capsule)?.is_some() || capsule.is(numpy.default_capsule(capsule.py()));
    if is_ours { Ok(Some(PyAllocator::numpy())) } else { behind_capsule(capsule) }
}

/// Whether the memory of `array` is as `allocator` would have made it.
#[pyfunction]
pub fn accepts(py: Python<'_>, allocator: &PyAllocator, array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(made) = of_array(py, NumPy::get(py)?, array)? else { return Ok(false) };
    let small = allocator.native().map_or(0, |native| native.small_limit());
    let is_left_to_numpy = || PyResult::Ok(array.getattr("nbytes")?.extract::<usize>()? < small);
    Ok(made == *allocator || (made == PyAllocator::numpy() && is_left_to_numpy()?))
}
