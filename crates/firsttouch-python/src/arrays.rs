//! `Allocator.empty` and `Allocator.zeros` by the short way: plain shapes and types, straight from the allocator into NumPy's
//! array. Making an array around our memory costs a third of setting and restoring a handler.
//!
//! Everything else, and every other constructor, is NumPy's own function with the allocator's handler in place (`arrays.py`).

#![allow(unsafe_code)] // Safety: blocks go from the handler's functions into arrays that give them back to it.

use crate::allocators::allocator::PyAllocator;
use crate::custom;
use crate::handlers::capsules;
use crate::handlers::handler;
use crate::numpy::{NumPy, PlainDtype, track};
use crate::python::callback;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple};

/// Dimensions that the short way takes: of more than it has, NumPy complains in its own words.
const MAX_DIMS: usize = 32;

/// A shape whose dimensions are all positive: of arrays without items NumPy sets the strides to zero, and does it itself.
fn shape(object: &Bound<'_, PyAny>) -> Option<Vec<isize>> {
    let dimension = |object: &Bound<'_, PyAny>| {
        let number: Option<isize> = object.cast_exact::<PyInt>().ok().and_then(|number| number.extract().ok());
        number.filter(|&number| number > 0)
    };
    match object.cast_exact::<PyTuple>() {
        Ok(dims) if dims.len() > MAX_DIMS => None,
        Ok(dims) => dims.iter().map(|object| dimension(&object)).collect(),
        Err(_) => dimension(object).map(|dim| vec![dim]),
    }
}

/// The bytes of an array; `None` if they are too many for any.
fn bytes(shape: &[isize], item_size: usize) -> Option<usize> {
    let product = shape.iter().try_fold(item_size, |bytes, &dim| bytes.checked_mul(dim as usize));
    product.filter(|&bytes| bytes <= isize::MAX as usize)
}

/// The shape and the type of a call that has no other arguments, but perhaps `order="C"`.
fn plain<'py>(
    numpy: &NumPy,
    by_place: &Bound<'py, PyTuple>,
    by_name: Option<&Bound<'py, PyDict>>,
) -> Option<(Vec<isize>, PlainDtype<'py>)> {
    let (py, count) = (by_place.py(), by_place.len());
    let mut dtype = (count == 2).then(|| by_place.get_item(1)).transpose().ok()?;
    for (name, value) in by_name.iter().flat_map(|by_name| by_name.iter()) {
        let name = name.cast::<PyString>().ok()?;
        if name == "dtype" && dtype.is_none() {
            dtype = Some(value);
        } else if name != "order" || !value.cast_exact::<PyString>().is_ok_and(|order| order == "C") {
            return None;
        }
    }
    let shape = if matches!(count, 1 | 2) { shape(&by_place.get_item(0).ok()?)? } else { return None };
    Some((shape, numpy.plain_dtype(py, dtype.as_ref())?))
}

/// An array made the short way; `None` where the long way is needed, also for the words of an error.
fn short<'py>(
    allocator: &Bound<'py, PyAllocator>,
    by_place: &Bound<'py, PyTuple>,
    by_name: Option<&Bound<'py, PyDict>>,
    zeroed: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = allocator.py();
    let numpy = NumPy::get(py)?;
    let Some((shape, (dtype, item_size))) = plain(numpy, by_place, by_name) else { return Ok(None) };
    let capsule = capsules::of_allocator(py, allocator.get())?;
    let (Some(handler), Some(bytes)) = (capsules::serving_handler(capsule)?, bytes(&shape, item_size)) else {
        return Ok(None);
    };
    let ctx = handler.raw.allocator.ctx;
    drop(custom::take_error(py)); // of an earlier allocation whose caller did not take it
    // SAFETY: the functions are the handler's own, and the block is owned by the array or freed by them.
    unsafe {
        let data = if zeroed { handler::calloc(ctx, bytes, 1) } else { handler::malloc(ctx, bytes) };
        if data.is_null() {
            return custom::take_error(py).map_or(Ok(None), Err); // a custom allocator is called once
        }
        let array = numpy.owning(&shape, &dtype, data, capsule);
        match &array {
            Ok(_) => track(data, bytes),
            Err(_) => handler::free(ctx, data, bytes),
        }
        array.map(Some)
    }
}

/// An array of zeros, or an uninitialized one.
fn make<'py>(
    allocator: &Bound<'py, PyAllocator>,
    by_place: &Bound<'py, PyTuple>,
    by_name: Option<&Bound<'py, PyDict>>,
    zeroed: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(array) = short(allocator, by_place, by_name, zeroed)? {
        return Ok(array);
    }
    let long = callback(allocator.py(), if zeroed { "zeros" } else { "empty" })?;
    let method = long.call_method1("__get__", (allocator,))?;
    method.call(by_place, by_name)
}

#[pymethods]
impl PyAllocator {
    fn __repr__(&self) -> String {
        self.expression()
    }

    /// Return a new uninitialized array of the given shape and type, on this allocator's memory.
    ///
    /// As :func:`firsttouch.empty`.
    #[pyo3(signature = (*by_place, **by_name))]
    #[pyo3(text_signature = "($self, shape, dtype=None, order='C', *, device=None, like=None)")]
    fn empty<'py>(
        slf: &Bound<'py, Self>,
        by_place: &Bound<'py, PyTuple>,
        by_name: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        make(slf, by_place, by_name, false)
    }

    /// Return a new array of the given shape and type, filled with zeros, on this allocator's memory.
    ///
    /// As :func:`firsttouch.zeros`.
    #[pyo3(signature = (*by_place, **by_name))]
    #[pyo3(text_signature = "($self, shape, dtype=None, order='C', *, device=None, like=None)")]
    fn zeros<'py>(
        slf: &Bound<'py, Self>,
        by_place: &Bound<'py, PyTuple>,
        by_name: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        make(slf, by_place, by_name, true)
    }
}
