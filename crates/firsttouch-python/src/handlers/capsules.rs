//! Capsules, by which NumPy knows handlers; the handler of the current context; and the allocator of an array.

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
    // SAFETY: `new_capsule` put the box of a handler into this capsule, whose last user is gone.
    let handler = unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule, CAPSULE.as_ptr());
        if pointer.is_null() {
            return;
        }
        Box::from_raw(pointer.cast::<Handler>())
    };
    // A scope's handler holds another capsule. PyO3 drops that at once only in a thread that is attached.
    let may_be_last = handler.behind.is_none() && Arc::strong_count(handler.allocator()) <= 2;
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
    // SAFETY: the handler begins with what NumPy expects; the capsule's destructor frees the box, or we do if there is none.
    unsafe {
        let capsule = ffi::PyCapsule_New(handler.cast(), CAPSULE.as_ptr(), Some(drop_handler));
        if capsule.is_null() {
            drop(Box::from_raw(handler));
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// The capsule of the handler of a context, or of constructors, that use `allocator`.
pub fn of_allocator<'a, 'py>(py: Python<'py>, allocator: &'a PyAllocator) -> PyResult<&'a Bound<'py, PyAny>> {
    allocator.ensure_open()?;
    let made = allocator.capsule().get_or_try_init(|| {
        ensure_memory(py)?;
        let &(_, next) = NumPy::get(py)?.own_handler(py)?;
        let handler = match allocator.native() {
            // It serves as NumPy's own handler does, but has each block freed by its owner, as an array may get another's data.
            None => Handler::new(Kind::NumPy, process_pool().clone(), SMALL_LIMIT, next),
            Some(native) => Handler::new(Kind::Context, native.clone(), native.small_limit(), next),
        };
        PyResult::Ok(Box::new(new_capsule(py, handler)?.unbind()))
    })?;
    Ok(made.bind(py))
}

/// A capsule for a context that enters a scope with this number. Requests that no scope serves go to the handler in `behind`.
pub fn of_scope<'py>(scope: u64, behind: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the capsule holds a living handler, whose first fields have not changed since NumPy 1.22.
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

/// The capsule that serves a context where no scope does.
pub fn behind_scopes(capsule: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let behind = handler_of(&capsule)?.and_then(|handler| Some(handler.behind.as_ref()?.bind(capsule.py()).clone()));
    Ok(behind.unwrap_or(capsule))
}

/// `capsule` if a scope is open that serves through it, else the one behind it.
pub fn nearest_open(capsule: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let scope = handler_of(&capsule)?.map_or(scope::NONE, Handler::scope);
    if scope::is_open(scope) { Ok(capsule) } else { behind_scopes(capsule) }
}

/// Lets `allocator` serve the current context; returns what served it before, to be put back.
#[pyfunction]
pub fn enter<'py>(py: Python<'py>, allocator: &PyAllocator) -> PyResult<Bound<'py, PyAny>> {
    NumPy::get(py)?.set_current(of_allocator(py, allocator)?)
}

/// Puts back what `enter` returned; where that was a scope's and the scope has ended since, the one behind it.
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

/// The allocator of a live block that will be freed through `capsule`.
fn of_block(numpy: &NumPy, capsule: &Bound<'_, PyAny>, block: Option<NonNull<u8>>) -> PyResult<Option<PyAllocator>> {
    // SAFETY: a live block of an array that the caller holds.
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
