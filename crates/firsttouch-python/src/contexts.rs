//! One context's handler, and which allocator made an array.

#![allow(unsafe_code)] // Safety: capsules own their handlers and are kept by the arrays made through them.

use crate::allocator::PyAllocator;
use crate::handler::{Handler, NAME};
use crate::install::{behind, installed, next, small_limit};
use crate::numpy_api::{CAPSULE, NumPy, OWNDATA, RawHandler, handler_in};
use firsttouch::memory::address_map;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

unsafe extern "C" fn drop_handler(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule was made below around a boxed handler, and its last array is gone.
    unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule, CAPSULE.as_ptr());
        if !pointer.is_null() {
            drop(Box::from_raw(pointer.cast::<Handler>()));
        }
    }
}

/// A capsule for NumPy that leads to `allocator`.
fn capsule<'py>(py: Python<'py>, allocator: &PyAllocator) -> PyResult<Bound<'py, PyAny>> {
    let Some(native) = allocator.native() else {
        // SAFETY: NumPy's own handler lives for ever, so this capsule needs no destructor.
        return unsafe {
            let raw = behind(py)?.cast_mut();
            Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(raw.cast(), CAPSULE.as_ptr(), None))
        };
    };
    // Only a pool has NumPy as its small upstream; whoever names another allocator gets it for every size.
    let small = if native.small_limit() > 0 { small_limit() } else { 0 };
    let handler = Box::into_raw(Handler::new(NAME, native.clone(), small, next(py)?));
    // SAFETY: the handler's first field is what NumPy expects; the destructor frees the box.
    unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(handler.cast(), CAPSULE.as_ptr(), Some(drop_handler)))
    }
}

/// Lets `allocator` serve the current context; what served it before, to be put back.
#[pyfunction]
fn enter<'py>(py: Python<'py>, allocator: &PyAllocator) -> PyResult<Bound<'py, PyAny>> {
    NumPy::get(py)?.set_current(&capsule(py, allocator)?)
}

/// Puts back what `enter` returned.
#[pyfunction]
fn leave(before: &Bound<'_, PyAny>) -> PyResult<()> {
    NumPy::get(before.py())?.set_current(before).map(|_| ())
}

fn behind_capsule(capsule: &Bound<'_, PyAny>) -> PyResult<PyAllocator> {
    let raw = handler_in(capsule)?.cast_const();
    // SAFETY: the capsule keeps its handler.
    unsafe {
        if let Some(handler) = Handler::from_raw(raw) {
            return Ok(PyAllocator::ours(handler.allocator().clone()));
        }
    }
    Ok(named(capsule.py(), raw))
}

fn named(py: Python<'_>, raw: *const RawHandler) -> PyAllocator {
    if behind(py).is_ok_and(|own| std::ptr::eq(own, raw)) {
        return PyAllocator::numpy();
    }
    // SAFETY: the handler came from a living capsule.
    PyAllocator::foreign(unsafe { (*raw).name() })
}

/// The allocator of new arrays in this context, or the one that made `array`'s memory; nothing where NumPy did not
/// allocate it.
#[pyfunction]
#[pyo3(signature = (array=None))]
fn get_allocator(py: Python<'_>, array: Option<&Bound<'_, PyAny>>) -> PyResult<Option<PyAllocator>> {
    let numpy = NumPy::get(py)?;
    match array {
        None => {
            let current = numpy.current(py)?;
            if current.is(numpy.default_capsule(py)) {
                return Ok(Some(installed().map_or_else(PyAllocator::numpy, PyAllocator::ours)));
            }
            behind_capsule(&current).map(Some)
        }
        Some(array) => of_array(py, numpy, array),
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
    let mut owner = array.clone();
    while let Some(fields) = numpy.array(&owner) {
        if fields.flags & OWNDATA != 0 && !fields.mem_handler.is_null() {
            // SAFETY: the array lives, its data is a living block, and it keeps a reference to its capsule.
            unsafe {
                let capsule = Bound::from_borrowed_ptr(py, fields.mem_handler);
                let handler = Handler::from_raw(handler_in(&capsule)?);
                if let Some(handler) = handler.filter(|handler| !handler.allocator().in_segments()) {
                    return Ok(Some(PyAllocator::ours(handler.allocator().clone())));
                }
                if let Some(ours) = address_map::shared_owner(fields.data as usize) {
                    return Ok(Some(PyAllocator::ours(ours)));
                }
                // A small array of a pool came from NumPy, whatever its capsule says.
                if handler.is_some() || capsule.is(numpy.default_capsule(py)) {
                    return Ok(Some(PyAllocator::numpy()));
                }
                return behind_capsule(&capsule).map(Some);
            }
        }
        if fields.base.is_null() {
            return Ok(None);
        }
        // SAFETY: the array keeps a reference to its base.
        owner = unsafe { Bound::from_borrowed_ptr(py, fields.base) };
    }
    Ok(None)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(enter, module)?)?;
    module.add_function(wrap_pyfunction!(leave, module)?)?;
    module.add_function(wrap_pyfunction!(get_allocator, module)?)
}
