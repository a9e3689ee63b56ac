//! `empty` and `zeros`, as functions and as methods of an allocator, by the short way: plain shapes and types, straight from
//! the allocator into NumPy's array.
//!
//! Everything else takes the long way: NumPy's own function with the allocator's handler in place. Making the array around
//! our memory costs a third of setting and restoring a handler.

#![allow(unsafe_code)] // Safety: blocks go from the handler's functions into arrays that give them back to it.

use crate::allocators::allocator::PyAllocator;
use crate::custom;
use crate::handlers::capsules;
use crate::handlers::front::serving;
use crate::handlers::handler::{self, Handler};
use crate::numpy::{NumPy, PlainDtype, track};
use crate::python::callback;
use firsttouch::layout::array_bytes;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyString};
use std::ffi::CString;
use std::ptr::null_mut;

/// Dimensions that the short way takes.
const MAX_DIMS: usize = 8;

/// The arguments of `empty` and `zeros`, as they came.
struct Arguments<'a, 'py> {
    shape: &'a Bound<'py, PyAny>,
    dtype: Option<&'a Bound<'py, PyAny>>,
    order: Option<&'a Bound<'py, PyAny>>,
    device: Option<&'a Bound<'py, PyAny>>,
    like: Option<&'a Bound<'py, PyAny>>,
    allocator: Option<&'a Bound<'py, PyAny>>,
}

/// A shape of few dimensions, all positive: of arrays without items NumPy sets the strides to zero, and does it itself.
struct Shape {
    dims: [isize; MAX_DIMS],
    len: usize,
}

fn dimension(object: *mut ffi::PyObject) -> Option<isize> {
    // SAFETY: the object is live; an error (a number that is too large) is cleared, and occurs again in the general
    // path.
    unsafe {
        if ffi::PyLong_CheckExact(object) == 0 {
            return None;
        }
        let n = ffi::PyLong_AsSsize_t(object);
        if n == -1 && !ffi::PyErr_Occurred().is_null() {
            ffi::PyErr_Clear();
        }
        (n > 0).then_some(n)
    }
}

fn shape(object: &Bound<'_, PyAny>) -> Option<Shape> {
    let mut shape = Shape { dims: [0; MAX_DIMS], len: 1 };
    let raw = object.as_ptr();
    // SAFETY: the tuple lives as long as `object`, and no more items are read than it has.
    unsafe {
        if ffi::PyTuple_CheckExact(raw) == 0 {
            shape.dims[0] = dimension(raw)?;
            return Some(shape);
        }
        shape.len = usize::try_from(ffi::PyTuple_Size(raw)).ok().filter(|&len| len <= MAX_DIMS)?;
        for at in 0..shape.len {
            shape.dims[at] = dimension(ffi::PyTuple_GetItem(raw, at as isize))?;
        }
    }
    Some(shape)
}

impl Shape {
    fn dims(&self) -> &[isize] {
        &self.dims[..self.len]
    }

    /// The bytes that NumPy requests for this shape: an array without items has room for one.
    fn bytes(&self, item_size: usize) -> Option<usize> {
        let mut dims = [0; MAX_DIMS];
        for (to, from) in dims.iter_mut().zip(self.dims()) {
            *to = *from as usize;
        }
        array_bytes(&dims[..self.len], item_size).ok().map(|bytes| bytes.max(item_size))
    }
}

fn is_c(order: &Bound<'_, PyAny>) -> bool {
    order.cast_exact::<PyString>().is_ok_and(|text| text == "C")
}

/// An array made the short way; `None` where the long way is needed.
fn short<'py>(py: Python<'py>, a: &Arguments<'_, 'py>, zeroed: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
    if a.device.is_some() || a.like.is_some() || a.order.is_some_and(|order| !is_c(order)) {
        return Ok(None);
    }
    let numpy = NumPy::get(py)?;
    let (Some(shape), Some(dtype)) = (shape(a.shape), numpy.plain_dtype(py, a.dtype)) else { return Ok(None) };
    let dtype = &dtype;
    let Some(given) = a.allocator else {
        let current = numpy.current(py)?;
        if !current.is(numpy.default_capsule(py)) {
            let handler = capsules::handler(&current)?;
            return handler.map_or(Ok(None), |handler| made(numpy, handler, &current, &shape, dtype, zeroed));
        }
        return match serving() {
            Some(front) => made(numpy, front, &current, &shape, dtype, zeroed),
            None => numpy.plain(shape.dims(), &dtype.object, zeroed).map(Some),
        };
    };
    match given.cast::<PyAllocator>() {
        Ok(allocator) => {
            let capsule = capsules::named(py, allocator.get())?;
            let handler = capsules::handler(capsule)?;
            handler.map_or(Ok(None), |handler| made(numpy, handler, capsule, &shape, dtype, zeroed))
        }
        Err(_) => Ok(None),
    }
}

fn made<'py>(
    numpy: &NumPy,
    handler: &Handler,
    capsule: &Bound<'py, PyAny>,
    shape: &Shape,
    dtype: &PlainDtype<'py>,
    zeroed: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(bytes) = shape.bytes(dtype.size) else { return Ok(None) };
    let ctx = handler.ctx();
    drop(custom::kept_error()); // of an earlier allocation whose caller did not take it
    // SAFETY: the functions are the handler's own, and the block is owned by the array or freed by them.
    unsafe {
        let data = if zeroed { handler::calloc(ctx, bytes, 1) } else { handler::malloc(ctx, bytes) };
        if data.is_null() {
            if let Some(error) = custom::kept_error() {
                return Err(error); // a custom allocator is called once
            }
            return Ok(None); // the long way fails too, and raises the exception
        }
        let array = numpy.owning(shape.dims(), &dtype.object, data, capsule);
        match &array {
            Ok(_) => track(data, bytes),
            Err(_) => handler::free(ctx, data, bytes),
        }
        array.map(Some)
    }
}

fn long<'py>(py: Python<'py>, a: &Arguments<'_, 'py>, zeroed: bool) -> PyResult<Bound<'py, PyAny>> {
    let named = [("dtype", a.dtype), ("order", a.order), ("device", a.device), ("like", a.like)];
    let kwargs = PyDict::new(py);
    for (name, value) in named.into_iter().chain([("allocator", a.allocator)]) {
        if let Some(value) = value {
            kwargs.set_item(name, value)?;
        }
    }
    callback(py, if zeroed { "zeros" } else { "empty" })?.call((a.shape,), Some(&kwargs))
}

/// An array of zeros, or an uninitialized one.
fn make<'py>(py: Python<'py>, a: &Arguments<'_, 'py>, zeroed: bool) -> PyResult<Bound<'py, PyAny>> {
    match short(py, a, zeroed)? {
        Some(array) => Ok(array),
        None => long(py, a, zeroed),
    }
}

macro_rules! constructor {
    ($name:ident, $zeroed:literal) => {
        #[pyfunction]
        #[pyo3(signature = (shape, dtype=None, order=None, *, device=None, like=None, allocator=None))]
        #[pyo3(text_signature = "(shape, dtype=None, order='C', *, device=None, like=None, allocator=None)")]
        pub fn $name<'py>(
            py: Python<'py>,
            shape: &Bound<'py, PyAny>,
            dtype: Option<&Bound<'py, PyAny>>,
            order: Option<&Bound<'py, PyAny>>,
            device: Option<&Bound<'py, PyAny>>,
            like: Option<&Bound<'py, PyAny>>,
            allocator: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<Bound<'py, PyAny>> {
            make(py, &Arguments { shape, dtype, order, device, like, allocator }, $zeroed)
        }
    };
}

constructor!(empty, false);
constructor!(zeros, true);

/// One of these functions with its docstring, which `firsttouch.arrays` writes for all constructors.
#[pyfunction]
pub fn documented<'py>(function: &Bound<'py, PyCFunction>, doc: &str) -> PyResult<Bound<'py, PyAny>> {
    let name: String = function.getattr("__name__")?.extract()?;
    let signature: String = function.getattr("__text_signature__")?.extract()?;
    // A function refers to its name and its docstring for ever.
    let lasting = |text: String| CString::new(text).map(|text| Box::leak(text.into_boxed_c_str()).as_ptr());
    // SAFETY: the same C function, called in the same way, under a definition that lives for ever.
    unsafe {
        let Some(code) = ffi::PyCFunction_GetFunction(function.as_ptr()) else {
            return Ok(function.clone().into_any());
        };
        let definition = Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: lasting(name.clone())?,
            ml_meth: ffi::PyMethodDefPointer { PyCFunction: code },
            ml_flags: ffi::PyCFunction_GetFlags(function.as_ptr()),
            ml_doc: lasting(format!("{name}{signature}\n--\n\n{doc}"))?,
        }));
        let of = ffi::PyCFunction_GetSelf(function.as_ptr());
        Bound::from_owned_ptr_or_err(function.py(), ffi::PyCFunction_NewEx(definition, of, null_mut()))
    }
}

#[pymethods]
impl PyAllocator {
    fn __repr__(&self) -> String {
        self.expression()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self == other
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.key().hash(&mut hasher);
        hasher.finish()
    }

    /// Return a new uninitialized array of the given shape and type, on this allocator's memory.
    ///
    /// As :func:`firsttouch.empty`.
    #[pyo3(signature = (shape, dtype=None, order=None, *, device=None, like=None))]
    #[pyo3(text_signature = "($self, shape, dtype=None, order='C', *, device=None, like=None)")]
    fn empty<'py>(
        slf: &Bound<'py, Self>,
        shape: &Bound<'py, PyAny>,
        dtype: Option<&Bound<'py, PyAny>>,
        order: Option<&Bound<'py, PyAny>>,
        device: Option<&Bound<'py, PyAny>>,
        like: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        make(slf.py(), &Arguments { shape, dtype, order, device, like, allocator: Some(slf.as_any()) }, false)
    }

    /// Return a new array of the given shape and type, filled with zeros, on this allocator's memory.
    ///
    /// As :func:`firsttouch.zeros`.
    #[pyo3(signature = (shape, dtype=None, order=None, *, device=None, like=None))]
    #[pyo3(text_signature = "($self, shape, dtype=None, order='C', *, device=None, like=None)")]
    fn zeros<'py>(
        slf: &Bound<'py, Self>,
        shape: &Bound<'py, PyAny>,
        dtype: Option<&Bound<'py, PyAny>>,
        order: Option<&Bound<'py, PyAny>>,
        device: Option<&Bound<'py, PyAny>>,
        like: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        make(slf.py(), &Arguments { shape, dtype, order, device, like, allocator: Some(slf.as_any()) }, true)
    }
}
