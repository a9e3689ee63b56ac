//! Python objects as arguments of the core's factories, and the core's errors as exceptions.

use crate::allocators::allocator::PyAllocator;
use crate::python::callbacks::callback;
use crate::python::errors::{PyMemoryError, PyTypeError, PyValueError, UnsupportedError};
use crate::python::values::{self, Name};
use firsttouch::allocator::{Allocator, Description};
use firsttouch::description::Value;
use firsttouch::factory::{Argument, Error, Given};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyList, PyString, PyTuple};
use std::sync::Arc;

/// An argument that is a Python object.
pub struct PyArgument<'py>(pub Bound<'py, PyAny>);

impl Argument for PyArgument<'_> {
    fn given(&self) -> Result<Given, Error> {
        given(&self.0).map_err(front)
    }

    fn upstream(&self, caller: &str) -> Result<Arc<dyn Allocator>, Error> {
        upstream(&self.0, caller).map_err(front)
    }
}

/// Returns a result, or `None` for an error that says what an object is not. A lack of memory is passed on.
fn unless_out_of_memory<T>(result: PyResult<T>, py: Python<'_>) -> PyResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyMemoryError>(py) => Err(error),
        Err(_) => Ok(None),
    }
}

/// NumPy's own bool, which has an `__index__` before NumPy 2.2.
fn is_numpy_bool(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = object.get_type();
    Ok(kind.name()?.to_cow()? == "bool" && kind.module()?.to_cow()? == "numpy")
}

/// The value of an object.
pub fn given(object: &Bound<'_, PyAny>) -> PyResult<Given> {
    let value = if object.is_none() {
        Value::None
    } else if object.is_instance_of::<PyBool>() {
        Value::Flag(object.extract()?)
    } else if let Ok(text) = object.cast::<PyString>() {
        match unless_out_of_memory(text.to_cow(), object.py())? {
            Some(text) => Value::Text(text.into_owned().into()),
            None => return other(object), // half of a surrogate pair
        }
    } else if object.is_instance_of::<PyFloat>() {
        Value::Float(object.extract()?)
    } else if let Ok(allocator) = object.cast::<PyAllocator>() {
        let allocator = allocator.get();
        let opaque = || Description::opaque(allocator.expression());
        Value::Allocator(allocator.native().map_or_else(opaque, |native| native.describe()))
    } else if object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>() {
        let mut all = Vec::new();
        for each in object.try_iter()? {
            match given(&each?)? {
                Given::Value(value) => all.push(value),
                _ => return other(object),
            }
        }
        Value::Several(all)
    } else if is_numpy_bool(object)? {
        return other(object);
    } else if let Some(number) = unless_out_of_memory(object.call_method0(Name("__index__")), object.py())? {
        match unless_out_of_memory(number.extract::<i128>(), object.py())? {
            Some(number) => Value::Integer(number),
            None => return Ok(Given::Large(number.str()?.to_cow()?.into_owned())),
        }
    } else {
        return other(object);
    };
    Ok(Given::Value(value))
}

fn other(object: &Bound<'_, PyAny>) -> PyResult<Given> {
    let kind = object.get_type();
    let name = kind.name()?;
    let numpys = kind.module().is_ok_and(|module| module == "numpy"); // it has a bool of its own
    let shown = object.repr()?.to_cow()?.into_owned();
    Ok(Given::Other { shown, kind: format!("{}{}", if numpys { "numpy." } else { "" }, name.to_cow()?) })
}

fn upstream(object: &Bound<'_, PyAny>, caller: &str) -> PyResult<Arc<dyn Allocator>> {
    let py = object.py();
    let named = || values::arguments(py, (object.clone(), caller));
    let found = match object.cast::<PyAllocator>() {
        Ok(found) => found.clone(),
        Err(_) => callback(py, "checked")?.call1(named()?)?.cast_into()?,
    };
    found.get().require_native(caller)
}

fn front(error: PyErr) -> Error {
    Error::Front(Box::new(error))
}

/// The exception for an error of the core's factories.
pub fn raised(error: Error) -> PyErr {
    match error {
        Error::Call(message) | Error::Type(message) => PyTypeError::new_err(message),
        Error::Unsupported(message) => UnsupportedError::new_err(message),
        Error::Memory(error) => PyMemoryError::new_err(error.to_string()),
        Error::Front(error) => match error.downcast::<PyErr>() {
            Ok(error) => *error,
            Err(error) => PyValueError::new_err(error.to_string()),
        },
        error => PyValueError::new_err(error.to_string()),
    }
}
