//! The functions that make allocators: those of the core's declaration, with signatures and docstrings written from it;
//! expressions; and those that only Python has.

#![allow(unsafe_code)] // Safety: addresses of functions are taken on their giver's word.

use crate::allocators::allocator::PyAllocator;
use crate::python::values::{
    self, Dict, Name, PyMemoryError, PyTypeError, PyValueError, ToPython, UnsupportedError, ensure_memory,
};
use crate::python::{call_sites, callback, gil};
use firsttouch::adaptors::{CallSites, Limited};
use firsttouch::allocator::{Allocator, find};
use firsttouch::description::{self, Description, Value};
use firsttouch::expression;
use firsttouch::factory::{self, Argument, Error, Given};
use firsttouch::size;
use firsttouch::sources::{Functions, FunctionsTable, PlacedPages};
use firsttouch::spec::{self, ALLOCATORS, Default, Kind, Opt, Spec};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCFunction, PyDict, PyFloat, PyList, PyString, PyTuple};
use std::ffi::CString;
use std::sync::Arc;

// ---- Python objects as arguments, and the core's errors as exceptions ---------------------------------------------

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

/// The exception for an error of the core's factory.
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

/// The size in bytes that the argument `name` gives, as a number or as text.
pub fn bytes(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    given(value)?.size(name, false).map_err(raised)
}

/// The same for Python.
#[pyfunction]
fn size_argument(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ToPython<usize>> {
    bytes(name, value).map(ToPython)
}

/// The bytes of a size in text, like `"64 KiB"`.
#[pyfunction]
fn parse_size(text: &str) -> PyResult<ToPython<usize>> {
    size::parse(text).map(ToPython).map_err(PyValueError::new_err)
}

/// The canonical text of a NUMA policy of this machine.
#[pyfunction]
fn policy_argument(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ToPython<String>> {
    given(value)?.policy(name).map(|policy| ToPython(policy.to_string())).map_err(raised)
}

// ---- The functions of the declaration ------------------------------------------------------------------------------

/// Arguments by their place, then those by their name.
type Arguments<'py> = Vec<(Option<String>, PyArgument<'py>)>;

fn collect<'py>(by_place: &Bound<'py, PyTuple>, by_name: Option<&Bound<'py, PyDict>>) -> PyResult<Arguments<'py>> {
    let mut all: Arguments<'py> = by_place.iter().map(|object| (None, PyArgument(object))).collect();
    for (name, object) in by_name.iter().flat_map(|by_name| by_name.iter()) {
        all.push((Some(name.extract()?), PyArgument(object)));
    }
    Ok(all)
}

/// A call as the core takes it.
fn call<'a>(arguments: &'a Arguments<'_>) -> Vec<(Option<&'a str>, &'a dyn Argument)> {
    arguments.iter().map(|(name, object)| (name.as_deref(), object as _)).collect()
}

fn build(py: Python<'_>, spec: &'static Spec, call: &factory::Call<'_>) -> Result<PyAllocator, Error> {
    let made = factory::build(spec, call)?;
    if find::<Limited>(&made).is_some() {
        // NumPy's own errors explain refusals by a budget from now on.
        callback(py, "budget_made").and_then(|budget_made| budget_made.call0()).map_err(front)?;
    }
    Ok(PyAllocator::ours(made))
}

/// An option as it stands in a signature, with its annotation for the stub.
fn parameter(option: &Opt, annotated: bool) -> String {
    let annotation = match option.kind {
        Kind::Upstream(_) => "AllocatorLike".into(),
        Kind::Alignment | Kind::Size | Kind::Budget => "Size".into(),
        Kind::Byte => "int".into(),
        Kind::Flag => "bool".into(),
        Kind::Seconds => "float | None".into(),
        Kind::Word(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            format!("Literal[{}]", words.join(", "))
        }
        Kind::PageSizes => "Huge".into(),
        Kind::Threads => "bool | int".into(),
        Kind::Policy => "Policy".to_owned(),
    };
    let nullable = matches!(option.default, Default::Is(Value::None) | Default::Needed(_)) || option.kind == Kind::Byte;
    let or_none = if nullable { " | None" } else { "" };
    let name = option.name;
    let default = match &option.default {
        Default::Required => None,
        Default::Needed(_) => Some(Value::None.to_string()),
        Default::Is(value) => Some(value.to_string()),
    };
    match (annotated, default) {
        (true, Some(default)) => format!("{name}: {annotation}{or_none} = {default}"),
        (true, None) => format!("{name}: {annotation}"),
        (false, Some(default)) => format!("{name}={default}"),
        (false, None) => name.into(),
    }
}

fn signature(spec: &Spec, annotated: bool) -> String {
    let mut parts: Vec<String> = spec.options.iter().map(|option| parameter(option, annotated)).collect();
    if spec.positional < parts.len() {
        parts.insert(spec.positional, "*".into());
    }
    format!("({})", parts.join(", "))
}

/// What a docstring says that an option takes.
fn kind_in_words(option: &Opt) -> String {
    let kind = match option.kind {
        Kind::Upstream(_) => "AllocatorLike".into(),
        Kind::Alignment | Kind::Size | Kind::Budget => "int or str".into(),
        Kind::Byte => "int or None".into(),
        Kind::Flag => "bool".into(),
        Kind::Seconds => "float or None".into(),
        Kind::Word(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            format!("{{{}}}", words.join(", "))
        }
        Kind::PageSizes => "False, str or sequence of these".into(),
        Kind::Threads => "bool or int".into(),
        Kind::Policy => "int or str".to_owned(),
    };
    match &option.default {
        Default::Is(Value::None) => format!("{kind}, optional"),
        Default::Is(value) => format!("{kind}, default {}", value.to_string().replace('\'', "\"")),
        _ => kind,
    }
}

/// The numpydoc docstring.
fn docstring(spec: &Spec) -> String {
    const WIDTH: usize = 88;
    let wrapped = |text: &str, indent: &str| {
        let (mut out, mut line) = (String::new(), String::from(indent));
        for word in text.split_whitespace() {
            if line.len() > indent.len() && line.len() + 1 + word.len() > WIDTH {
                out += &line;
                out.push('\n');
                line = indent.into();
            }
            if line.len() > indent.len() {
                line.push(' ');
            }
            line += word;
        }
        out + &line + "\n"
    };
    let mut doc = format!("Return {}\n", spec.summary);
    let mut section = |title: &str, body: &str| {
        if !body.is_empty() {
            doc += &format!("\n{title}\n{}\n{}\n", "-".repeat(title.len()), body.trim_end());
        }
    };
    let option = |each: &Opt| format!("{} : {}\n{}", each.name, kind_in_words(each), wrapped(each.help, "    "));
    section("Parameters", &spec.options.iter().map(option).collect::<String>());
    section("Returns", "Allocator");
    if !spec.options.is_empty() {
        section("Raises", "TypeError, ValueError\n    If an argument is not one of the above.");
    }
    let paragraphs: Vec<String> =
        spec.notes.split("\n\n").filter(|text| !text.is_empty()).map(|text| wrapped(text, "")).collect();
    section("Notes", &paragraphs.join("\n"));
    section("Examples", spec.example);
    doc
}

/// The functions as a module, `firsttouch._allocators`.
fn functions<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyModule>> {
    let module = PyModule::new(py, "firsttouch._allocators")?;
    for spec in ALLOCATORS {
        let doc = format!("{}{}\n--\n\n{}", spec.name, signature(spec, false), docstring(spec));
        // A function refers to its name and its docstring for ever.
        let lasting = |text: String| CString::new(text).map(|text| &*Box::leak(text.into_boxed_c_str()));
        let (name, doc) = (lasting(spec.name.into())?, lasting(doc)?);
        let function = PyCFunction::new_closure(py, Some(name), Some(doc), move |by_place, by_name| {
            let py = by_place.py();
            ensure_memory(py)?;
            build(py, spec, &call(&collect(by_place, by_name)?)).map_err(raised)
        })?;
        function.setattr("__module__", "firsttouch")?;
        module.add(spec.name, function)?;
    }
    Ok(module)
}

/// A row of [`declared`].
type Row = (&'static str, bool, &'static str, String, String);

/// What is declared: name, whether it is an adaptor, what it is, and its signature, plain and annotated.
#[pyfunction]
fn declared() -> ToPython<Vec<Row>> {
    let row = |spec: &'static Spec| {
        (spec.name, spec.is_adaptor(), spec.summary, signature(spec, false), signature(spec, true))
    };
    ToPython(ALLOCATORS.iter().map(row).collect())
}

// ---- Expressions: the core parses them and creates what it knows; Python creates the rest -------------------------

/// The text of an expression, and the functions, by name, that create what the core does not know.
struct Evaluation<'a, 'py> {
    text: &'a str,
    others: &'a Bound<'py, PyDict>,
}

/// The allocator that `text` describes; `others` are the functions that the core does not know, by their names.
#[pyfunction]
fn evaluate_expression<'py>(text: &str, others: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    ensure_memory(others.py())?;
    let parsed = expression::parse(text).map_err(|error| raised(error.into()))?;
    let names: Vec<String> = others.keys().extract()?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    factory::check_quotes(&parsed, &names).map_err(raised)?;
    Evaluation { text: text.trim(), others }.call(&parsed)
}

/// Checks the names in an expression, of allocators and arguments. The `others` that it names.
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
        let objects = arguments.map(|description::Argument { name, value }| Ok((name.as_deref(), self.object(value)?)));
        let objects: Vec<_> = objects.collect::<PyResult<_>>()?;
        if let Some(spec) = Spec::find(&description.name) {
            let objects: Vec<_> = objects.into_iter().map(|(name, object)| (name, PyArgument(object))).collect();
            let call: Vec<_> = objects.iter().map(|(name, object)| (*name, object as &dyn Argument)).collect();
            let made = build(py, spec, &call).map_err(|error| self.raised(error))?;
            return Ok(Bound::new(py, made)?.into_any());
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

// ---- What only Python has -------------------------------------------------------------------------------------------

/// Pages with a receipt, also where `pages` would make plain ones.
#[pyfunction]
#[pyo3(signature = (**options))]
fn placed_pages(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<PyAllocator> {
    ensure_memory(py)?;
    let arguments = collect(&PyTuple::empty(py), options)?;
    let placement = spec::placement(&call(&arguments)).map_err(raised)?;
    Ok(PyAllocator::ours(PlacedPages::new(placement)))
}

/// The upstream of an allocator that reuses blocks: the given one, huge pages with a policy, or `None`.
#[pyfunction]
fn recycled_upstream(
    caller: &str,
    upstream: Option<&Bound<'_, PyAny>>,
    numa: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<PyAllocator>> {
    let policy = numa.map(|numa| given(numa)?.policy("numa").map_err(raised)).transpose()?;
    let upstream = upstream.map(|upstream| PyArgument(upstream.clone()));
    let upstream = upstream.as_ref().map(|upstream| upstream as &dyn Argument);
    Ok(spec::upstream_of(caller, upstream, policy).map_err(raised)?.map(PyAllocator::ours))
}

/// The C function at an address, which must not be null.
fn function<T: Copy>(name: &str, address: &Bound<'_, PyAny>) -> PyResult<T> {
    const { assert!(size_of::<T>() == size_of::<usize>()) };
    let address = given(address)?.function(name).map_err(raised)?;
    // SAFETY: a function pointer is an address; that a function of this type is there is what
    // `from_functions` demands of the program, as ctypes does.
    Ok(unsafe { std::mem::transmute_copy::<usize, T>(&address) })
}

#[pyfunction]
#[pyo3(signature = (*, malloc, free, calloc=None, realloc=None, context=None))]
fn from_functions(
    malloc: &Bound<'_, PyAny>,
    free: &Bound<'_, PyAny>,
    calloc: Option<&Bound<'_, PyAny>>,
    realloc: Option<&Bound<'_, PyAny>>,
    context: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyAllocator> {
    ensure_memory(malloc.py())?;
    let context = context.map_or(Ok(0), |context| given(context)?.address("context").map_err(raised))?;
    let table = FunctionsTable {
        malloc: function("malloc", malloc)?,
        calloc: calloc.map(|address| function("calloc", address)).transpose()?,
        realloc: realloc.map(|address| function("realloc", address)).transpose()?,
        free: function("free", free)?,
        context: std::ptr::with_exposed_provenance_mut(context),
    };
    gil::prepare_aside();
    // SAFETY: the functions keep malloc's contract in any thread, and stay loaded: the docstring of `from_functions`
    // demands it of the program.
    Ok(PyAllocator::ours(unsafe { Functions::with_free_inside(table, gil::aside) }))
}

#[pyfunction]
fn numpy_default() -> PyAllocator {
    PyAllocator::numpy()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    spec::set_call_sites(CallSites { site: call_sites::site, place: call_sites::file_and_line });
    let functions = functions(module.py())?;
    module.py().import("sys")?.getattr("modules")?.set_item("firsttouch._allocators", &functions)?;
    module.setattr("_allocators", functions)?; // as an attribute alone: `add` would make it public
    module.add_function(wrap_pyfunction!(declared, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate_expression, module)?)?;
    module.add_function(wrap_pyfunction!(check_expression, module)?)?;
    module.add_function(wrap_pyfunction!(did_you_mean, module)?)?;
    module.add_function(wrap_pyfunction!(size_argument, module)?)?;
    module.add_function(wrap_pyfunction!(parse_size, module)?)?;
    module.add_function(wrap_pyfunction!(policy_argument, module)?)?;
    module.add_function(wrap_pyfunction!(placed_pages, module)?)?;
    module.add_function(wrap_pyfunction!(recycled_upstream, module)?)?;
    module.add_function(wrap_pyfunction!(from_functions, module)?)?;
    module.add_function(wrap_pyfunction!(numpy_default, module)?)
}
