//! One context's handler, and which allocator made an array.

#![allow(unsafe_code)] // Safety: reads the fields of living arrays.

use crate::allocators::allocator::PyAllocator;
use crate::handlers::capsules::{self, nearest_open};
use crate::handlers::front::installed;
use crate::handlers::handler::Kind;
use crate::handlers::process_allocator::process_allocator;
use crate::numpy::abi::{OWNDATA, RawHandler, handler_in};
use crate::numpy::c_api::NumPy;
use crate::python::errors::PyTypeError;
use firsttouch::owners::{self, Keeper, Owner};
use firsttouch::scratch::Scope;
use pyo3::prelude::*;
use std::ptr::NonNull;

/// Lets `allocator` serve the current context; what served it before, to be put back.
#[pyfunction]
fn enter<'py>(py: Python<'py>, allocator: &PyAllocator) -> PyResult<Bound<'py, PyAny>> {
    NumPy::get(py)?.set_current(&capsules::context(py, allocator)?)
}

/// The same, but every size comes from `allocator`, at its alignment: for the time of one constructor.
#[pyfunction]
fn enter_direct<'py>(py: Python<'py>, allocator: &PyAllocator) -> PyResult<Bound<'py, PyAny>> {
    NumPy::get(py)?.set_current(capsules::direct(py, allocator)?)
}

/// Puts back what `enter` or `enter_direct` returned; where that was a scope that ended meanwhile, what is around it.
#[pyfunction]
fn leave(before: &Bound<'_, PyAny>) -> PyResult<()> {
    NumPy::get(before.py())?.set_current(&nearest_open(before.clone())?).map(|_| ())
}

/// The allocator of new arrays in this context.
#[pyfunction]
fn current(py: Python<'_>) -> PyResult<PyAllocator> {
    let numpy = NumPy::get(py)?;
    let capsule = nearest_open(numpy.current(py)?)?;
    if capsule.is(numpy.default_capsule(py)) {
        return Ok(installed().map_or_else(PyAllocator::numpy, PyAllocator::ours));
    }
    behind_capsule(&capsule)
}

fn behind_capsule(capsule: &Bound<'_, PyAny>) -> PyResult<PyAllocator> {
    match capsules::handler(capsule)? {
        Some(handler) => Ok(PyAllocator::ours(handler.allocator().clone())),
        None => Ok(named(capsule.py(), handler_in(capsule)?)),
    }
}

fn named(py: Python<'_>, raw: *const RawHandler) -> PyAllocator {
    if capsules::is_numpys(py, raw) {
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
    match array {
        None => current(py).map(Some),
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
    let mut owner = array.clone();
    while let Some(fields) = numpy.array(&owner) {
        if fields.flags & OWNDATA != 0 && !fields.mem_handler.is_null() {
            // SAFETY: the array lives and keeps a reference to its capsule.
            let capsule = unsafe { Bound::from_borrowed_ptr(py, fields.mem_handler) };
            return of_block(numpy, &capsule, fields.data as usize).map(Some);
        }
        if fields.base.is_null() {
            return Ok(None);
        }
        // SAFETY: the array keeps a reference to its base.
        owner = unsafe { Bound::from_borrowed_ptr(py, fields.base) };
    }
    Ok(None)
}

/// The allocator of ours that made the block at `address`.
///
/// # Safety
/// A live block begins there, whoever's.
unsafe fn made_by(address: NonNull<u8>) -> Option<PyAllocator> {
    let made = match owners::find(address) {
        Owner::Keeper(Keeper::Allocator(owner)) => owner,
        Owner::Keeper(Keeper::Backing(owner)) => Scope::outside(owner, process_allocator()),
        // SAFETY: a live block begins there (`get_allocator`, with an array's own data).
        Owner::Segment(_) => unsafe { owners::shared(address) }?,
        Owner::Gone | Owner::Nobody => return None,
    };
    Some(PyAllocator::ours(made))
}

/// Who made the live block at `address` that will be given back through `capsule`.
fn of_block(numpy: &NumPy, capsule: &Bound<'_, PyAny>, address: usize) -> PyResult<PyAllocator> {
    if let Some(handler) = capsules::handler(capsule)?.filter(|handler| handler.kind() != Kind::Front) {
        let living = NonNull::new(address as *mut u8);
        let scope = handler.serving_scope().zip(living);
        if let Some(owner) = scope.and_then(|(scope, block)| scope.elsewhere(block)) {
            return Ok(PyAllocator::ours(owner));
        }
        if scope.is_some_and(|(scope, block)| scope.knows(block)) {
            return Ok(PyAllocator::ours(handler.allocator().clone()));
        }
    }
    // SAFETY: the block lives.
    if let Some(ours) = NonNull::new(address as *mut u8).and_then(|address| unsafe { made_by(address) }) {
        return Ok(ours);
    }
    if let Some(handler) = capsules::handler(capsule)?.filter(|handler| handler.kind() != Kind::Front) {
        // The C library's: the handler's own word for it, where that is what it stands for.
        let own = handler.kind() == Kind::Direct || handler.small() == 0;
        return Ok(if own { PyAllocator::ours(handler.allocator().clone()) } else { PyAllocator::numpy() });
    }
    if capsule.is(numpy.default_capsule(capsule.py())) {
        return Ok(PyAllocator::numpy());
    }
    behind_capsule(capsule)
}

/// Whether the memory of `array` is as `allocator` would have made it.
#[pyfunction]
fn accepts(py: Python<'_>, allocator: &PyAllocator, array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let numpy = NumPy::get(py)?;
    let Some(fields) = numpy.array(array) else { return Ok(false) };
    if allocator.native().is_some_and(|native| native.accepts(fields.data as usize)) {
        return Ok(true);
    }
    Ok(of_array(py, numpy, array)?.is_some_and(|made| made == *allocator))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(enter, module)?)?;
    module.add_function(wrap_pyfunction!(enter_direct, module)?)?;
    module.add_function(wrap_pyfunction!(leave, module)?)?;
    module.add_function(wrap_pyfunction!(current, module)?)?;
    module.add_function(wrap_pyfunction!(accepts, module)?)?;
    module.add_function(wrap_pyfunction!(get_allocator, module)?)
}
