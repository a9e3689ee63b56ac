//! Allocator expressions: the core parses them and creates what it knows; Python creates the rest.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::arguments::{PyArgument, raised};
use crate::python::global_allocator::ensure_memory;
use crate::python::values::{self, Dict, ToPython};
use firsttouch::description::{Argument, Description, Value};
use firsttouch::expression;
use firsttouch::factory::{self, Error};
use firsttouch::spec::Spec;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

/// The text of an expression, and the functions, by name, that create what the core does not know.
struct Evaluation<'a, 'py> {
    text: &'a str,
    others: &'a Bound<'py, PyDict>,
}

/// The allocator that `text` describes; `others` are the factories that the core does not know, by their names.
#[pyfunction]
fn evaluate_expression<'py>(text: &str, others: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    ensure_memory(others.py())?;
    let parsed = expression::parse(text).map_err(|error| raised(error.into()))?;
    let names: Vec<String> = others.keys().extract()?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    factory::check_quotes(&parsed, &names).map_err(raised)?;
    Evaluation { text: text.trim(), others }.call(&parsed)
}

/// Checks the names in an expression, of factories and arguments. The `others` that it names.
#[pyfunction]
fn check_expression(text: &str, others: Vec<String>) -> PyResult<ToPython<Vec<String>>> {
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let mut found = Vec::new();
    factory::check_expression(text, &others, &mut |name| found.push(name.to_owned())).map_err(raised)?;
    Ok(ToPython(found))
}

/// `" (did you mean pool?)"`, or nothing where none of the known words is near.
#[pyfunction]
fn did_you_mean(word: &Bound<'_, PyString>, known: Vec<String>) -> ToPython<String> {
    // Words of a command line may have bytes that are not UTF-8.
    ToPython(expression::did_you_mean(&word.to_string_lossy(), known.iter().map(String::as_str)))
}

impl<'py> Evaluation<'_, 'py> {
    fn raised(&self, error: Error) -> PyErr {
        raised(error.within(self.text))
    }

    fn call(&self, description: &Description) -> PyResult<Bound<'py, PyAny>> {
        let py = self.others.py();
        let arguments = description.arguments.iter().flatten();
        let objects = arguments.map(|Argument { name, value }| Ok((name.as_deref(), self.object(value)?)));
        let objects: Vec<_> = objects.collect::<PyResult<_>>()?;
        if let Some(spec) = Spec::find(&description.name) {
            let objects: Vec<_> = objects.into_iter().map(|(name, object)| (name, PyArgument(object))).collect();
            let call: Vec<_> = objects.iter().map(|(name, object)| (*name, object as &dyn factory::Argument)).collect();
            let made = factory::build(spec, &call).map_err(|error| self.raised(error))?;
            return Ok(Bound::new(py, PyAllocator::ours(made))?.into_any());
        }
        let Some(other) = self.others.get_item(ToPython(description.name.as_ref()))? else {
            let names: Vec<String> = self.others.keys().extract()?;
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            return Err(self.raised(factory::no_allocator(&description.name, &names)));
        };
        let (by_place, by_name) = (values::list(py)?, Dict::new(py)?);
        for (name, object) in objects {
            match name {
                Some(name) => by_name.set_item(name, object)?,
                None => by_place.append(object)?,
            }
        }
        other.call(tuple(&by_place)?, Some(&by_name.done()))
    }

    fn object(&self, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        let py = self.others.py();
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
            Value::Several(values) => {
                let items = values::list(py)?;
                values.iter().try_for_each(|value| items.append(self.object(value)?))?;
                Ok(tuple(&items)?.into_any())
            }
            Value::Allocator(description) => self.call(description),
        }
    }
}

fn tuple<'py>(items: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyTuple>> {
    Ok(items.py().get_type::<PyTuple>().call1((items,))?.cast_into()?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(evaluate_expression, module)?)?;
    module.add_function(wrap_pyfunction!(check_expression, module)?)?;
    module.add_function(wrap_pyfunction!(did_you_mean, module)?)
}
