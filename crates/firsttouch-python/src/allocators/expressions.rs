//! Allocator expressions: the core parses them, and Python's factories make what they name.

use crate::python::errors::PyValueError;
use crate::python::values::{self, Dict, ToPython};
use firsttouch::description::{Argument, Description, Value};
use firsttouch::expression;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// What `make(name, arguments, named)` returns for the outermost call of an expression, after those within it.
///
/// Raises `ValueError` that says what is wrong with `text`, and at which character.
#[pyfunction]
fn evaluate_expression<'py>(text: &str, make: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let parsed = expression::parse(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    call(make, &parsed)
}

/// `" (did you mean pool?)"`, or nothing where none of the known words is near.
#[pyfunction]
fn did_you_mean(word: &str, known: Vec<String>) -> ToPython<String> {
    ToPython(expression::did_you_mean(word, known.iter().map(String::as_str)))
}

fn call<'py>(make: &Bound<'py, PyAny>, description: &Description) -> PyResult<Bound<'py, PyAny>> {
    let py = make.py();
    let (by_place, by_name) = (values::list(py)?, Dict::new(py)?);
    for Argument { name, value } in description.arguments.iter().flatten() {
        let value = object(make, value)?;
        match name {
            Some(name) => by_name.set_item(name, value)?,
            None => by_place.append(value)?,
        }
    }
    make.call1(values::arguments(py, (description.name.as_ref(), by_place.into_any(), by_name.done().into_any()))?)
}

fn object<'py>(make: &Bound<'py, PyAny>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    let py = make.py();
    match value {
        Value::None => Ok(py.None().into_bound(py)),
        Value::Flag(value) => ToPython(*value).into_pyobject(py),
        Value::Integer(value) => match i64::try_from(*value) {
            Ok(value) => ToPython(value).into_pyobject(py),
            Err(_) => Ok(value.into_pyobject(py)?.into_any()),
        },
        Value::Address(value) => ToPython(*value).into_pyobject(py),
        Value::Float(value) => ToPython(*value).into_pyobject(py),
        Value::Text(value) => ToPython(value.as_ref()).into_pyobject(py),
        Value::Several(values) => several(make, values),
        Value::Allocator(description) => call(make, description),
    }
}

fn several<'py>(make: &Bound<'py, PyAny>, values: &[Value]) -> PyResult<Bound<'py, PyAny>> {
    let items: Bound<'py, PyList> = values::list(make.py())?;
    values.iter().try_for_each(|value| items.append(object(make, value)?))?;
    Ok(make.py().get_type::<PyTuple>().call1((items,))?.into_any())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(evaluate_expression, module)?)?;
    module.add_function(wrap_pyfunction!(did_you_mean, module)?)
}
