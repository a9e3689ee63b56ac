//! The functions that make allocators: those of the core's declaration, with signatures and docstrings written from it;
//! expressions; and those that only Python has.

#![allow(unsafe_code)] // Safety: addresses of functions are taken on their giver's word.

use crate::allocators::allocator::PyAllocator;
use crate::python::values::{PyTypeError, PyValueError, UnsupportedError, ensure_memory};
use crate::python::{call_sites, callback, gil};
use firsttouch::adaptors::CallSites;
use firsttouch::allocator::Allocator;
use firsttouch::description::{Argument, Value};
use firsttouch::expression;
use firsttouch::factory::{self, Error};
use firsttouch::size;
use firsttouch::sources::{Functions, FunctionsTable};
use firsttouch::spec::{self, Opt, OptionKind, Spec};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCFunction, PyDict, PyFloat, PyString, PyTuple};
use std::ffi::CString;
use std::mem::transmute_copy;
use std::sync::Arc;

// ---- Python objects as arguments, and the core's errors as exceptions ---------------------------------------------

/// The value of an object.
fn given(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if object.is_none() {
        Ok(Value::None)
    } else if object.is_instance_of::<PyBool>() {
        Ok(Value::Flag(object.extract()?))
    } else if let Ok(text) = object.cast::<PyString>() {
        text.to_cow().map_or_else(|_| other(object), |text| Ok(text.into_owned().into())) // or half of a surrogate pair
    } else if object.is_instance_of::<PyFloat>() {
        Ok(Value::Float(object.extract()?))
    } else if let Ok(allocator) = object.cast::<PyAllocator>() {
        let allocator = allocator.get();
        let other = || Value::Other { shown: allocator.expression(), kind: "Allocator".into() };
        Ok(allocator.native().map_or_else(other, |native| Value::Existing(native.clone())))
    } else if let Ok(number) = object.call_method0("__index__") {
        let large = || Ok(Value::Other { shown: number.str()?.to_string(), kind: "int".into() });
        number.extract().map_or_else(|_| large(), |number| Ok(Value::Integer(number)))
    } else {
        other(object)
    }
}

fn other(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let kind = object.get_type();
    let numpys = kind.module().is_ok_and(|module| module == "numpy"); // it has a bool of its own
    let kind = format!("{}{}", if numpys { "numpy." } else { "" }, kind.name()?);
    Ok(Value::Other { shown: object.repr()?.to_string(), kind })
}

/// The allocator in Rust that an object is, describes or implements.
pub fn upstream(object: &Bound<'_, PyAny>, caller: &str) -> PyResult<Arc<dyn Allocator>> {
    let py = object.py();
    let found = match object.cast::<PyAllocator>() {
        Ok(found) => found.clone(),
        Err(_) => callback(py, "checked")?.call1((object, caller))?.cast_into()?,
    };
    found.get().require_native(caller)
}

/// The exception for an error of the core's factory.
pub fn raised(error: Error) -> PyErr {
    match error {
        Error::Type(message) => PyTypeError::new_err(message),
        Error::Value(message) => PyValueError::new_err(message),
        Error::Unsupported(message) => UnsupportedError::new_err(message),
    }
}

/// The size in bytes that the argument `name` gives, as a number or as text.
#[pyfunction]
#[pyo3(name = "size_argument")]
pub fn bytes(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    match OptionKind::Size.check(name, &given(value)?, false).map_err(raised)? {
        Value::Integer(bytes) => Ok(bytes as usize),
        _ => Ok(0), // there is no other
    }
}

/// The bytes of a size in text, like `"64 KiB"`.
#[pyfunction]
pub fn parse_size(text: &str) -> PyResult<usize> {
    size::parse(text).map_err(PyValueError::new_err)
}

/// The canonical text of a NUMA policy of this machine.
pub fn policy(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    match OptionKind::Policy.check(name, &given(value)?, false).map_err(raised)? {
        Value::Text(text) => Ok(text.into_owned()),
        other => Ok(other.to_string()), // there is no other
    }
}

// ---- The functions of the declaration ------------------------------------------------------------------------------

/// The arguments of a call as the core takes them, by their place and then by their name.
fn arguments(
    spec: &Spec,
    by_place: &Bound<'_, PyTuple>,
    by_name: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<Argument>> {
    let argument = |object: &Bound<'_, PyAny>, name: Option<String>, is_first: bool| {
        let is_upstream = spec.is_adaptor() && name.as_ref().map_or(is_first, |name| name == "upstream");
        let value = match given(object)? {
            value @ (Value::None | Value::Text(_) | Value::Existing(_)) => value,
            _ if is_upstream => Value::Existing(upstream(object, &format!("{}()", spec.name))?),
            value => value,
        };
        PyResult::Ok(Argument { name: name.map(Into::into), value })
    };
    let by_place = by_place.iter().enumerate().map(|(at, object)| argument(&object, None, at == 0));
    let by_name = by_name.iter().flat_map(|by_name| by_name.iter());
    by_place.chain(by_name.map(|(name, object)| argument(&object, Some(name.extract()?), false))).collect()
}

/// What the core made, as an object.
fn made(made: Result<Arc<dyn Allocator>, Error>) -> PyResult<PyAllocator> {
    made.map(PyAllocator::ours).map_err(raised)
}

/// What an option takes, in the stub and in a docstring.
fn annotations(kind: OptionKind) -> (String, String) {
    let (stub, words) = match kind {
        OptionKind::Upstream(_) => ("AllocatorLike", "AllocatorLike"),
        OptionKind::Alignment | OptionKind::Size | OptionKind::Budget => ("Size", "int or str"),
        OptionKind::Byte => ("int | None", "int or None"),
        OptionKind::Flag => ("bool", "bool"),
        OptionKind::Seconds => ("float | None", "float or None"),
        OptionKind::PageSize => ("Huge", "False or str"),
        OptionKind::Threads => ("bool | int", "bool or int"),
        OptionKind::Policy => ("Policy", "int or str"),
        OptionKind::Word(words) => {
            let words = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
            return (format!("Literal[{words}]"), format!("{{{words}}}"));
        }
    };
    (stub.into(), words.into())
}

/// A function's signature, annotated for the stub or plain.
fn signature(spec: &Spec, annotated: bool) -> String {
    let parameter = |option: &Opt| {
        let (annotation, _) = annotations(option.kind);
        let or_none = matches!(option.default, Some(Value::None)) && !annotation.ends_with("None");
        let annotation = format!(": {annotation}{}", if or_none { " | None" } else { "" });
        let (annotation, equals) = if annotated { (&*annotation, " = ") } else { ("", "=") };
        match &option.default {
            None => format!("{}{annotation}", option.name),
            Some(value) => format!("{}{annotation}{equals}{value}", option.name),
        }
    };
    let mut parts: Vec<String> = spec.options.iter().map(parameter).collect();
    if spec.positional < parts.len() {
        parts.insert(spec.positional, "*".into());
    }
    format!("({})", parts.join(", "))
}

/// What a docstring says that an option takes.
fn kind_in_words(option: &Opt) -> String {
    let (_, kind) = annotations(option.kind);
    match &option.default {
        Some(Value::None) => format!("{kind}, optional"),
        Some(value) => format!("{kind}, default {}", value.to_string().replace('\'', "\"")),
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
    for spec in spec::all() {
        let doc = format!("{}{}\n--\n\n{}", spec.name, signature(spec, false), docstring(spec));
        // A function refers to its name and its docstring for ever.
        let lasting = |text: String| CString::new(text).map(|text| &*Box::leak(text.into_boxed_c_str()));
        let (name, doc) = (lasting(spec.name.into())?, lasting(doc)?);
        let function = PyCFunction::new_closure(py, Some(name), Some(doc), move |by_place, by_name| {
            ensure_memory(by_place.py())?;
            made(factory::make(spec, &arguments(spec, by_place, by_name)?))
        })?;
        function.setattr("__module__", "firsttouch")?;
        module.add(spec.name, function)?;
    }
    Ok(module)
}

/// A row of [`declared`].
type Row = (&'static str, bool, &'static str, String, String);

/// What is declared, by name: name, whether it is an adaptor, what it is, and its signature, plain and annotated.
#[pyfunction]
pub fn declared() -> Vec<Row> {
    let row = |spec: &'static Spec| {
        (spec.name, spec.is_adaptor(), spec.summary, signature(spec, false), signature(spec, true))
    };
    let mut rows: Vec<_> = spec::all().map(row).collect();
    rows.sort_unstable_by_key(|(name, ..)| *name);
    rows
}

// ---- Expressions, and what only Python has --------------------------------------------------------------------------

/// The allocator that `text` describes.
#[pyfunction]
pub fn parse(py: Python<'_>, text: &str) -> PyResult<PyAllocator> {
    ensure_memory(py)?;
    made(factory::allocator_from_expression(text))
}

/// `" (did you mean pool?)"`, or nothing where none of the known words is near.
#[pyfunction]
pub fn did_you_mean(word: &Bound<'_, PyString>, known: Vec<String>) -> String {
    // Words of a command line may have bytes that are not UTF-8.
    expression::did_you_mean(&word.to_string_lossy(), known.iter().map(String::as_str))
}

/// Return an allocator that calls C functions, given by their addresses.
///
/// The functions have the signatures of NEP 49. Sizes are ``size_t``.
///
/// Parameters
/// ----------
/// malloc : int
///     Address of ``void *malloc(void *context, size_t size)``.
/// free : int
///     Address of ``void free(void *context, void *block, size_t size)``.
/// calloc : int, optional
///     Address of ``void *calloc(void *context, size_t count, size_t size)``. By default, memory from `malloc` is
///     cleared.
/// context : int, optional
///     First argument of every call.
///
/// Returns
/// -------
/// Allocator
///
/// Raises
/// ------
/// TypeError, ValueError, OverflowError
///     If an argument is not an address.
///
/// See Also
/// --------
/// firsttouch.custom.OwnAllocator : Allocators written in Python.
///
/// Notes
/// -----
/// The functions are called from any thread, without the GIL. The caller keeps them alive: a :mod:`ctypes` callback
/// ends with its Python object.
///
/// Examples
/// --------
/// >>> from ctypes import CFUNCTYPE, c_size_t, c_void_p, cast
/// >>> malloc = CFUNCTYPE(c_void_p, c_void_p, c_size_t)(lambda context, size: None)  # always out of memory
/// >>> free = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)(lambda context, block, size: None)
/// >>> address = lambda function: cast(function, c_void_p).value
/// >>> a = ft.allocators.from_functions(malloc=address(malloc), free=address(free))
/// >>> try:
/// ...     a.empty(1000)
/// ... except MemoryError as error:
/// ...     print(error)
/// Unable to allocate 7.81 KiB ...
#[pyfunction]
#[pyo3(signature = (*, malloc, free, calloc=None, context=0))]
pub fn from_functions(
    py: Python<'_>,
    malloc: usize,
    free: usize,
    calloc: Option<usize>,
    context: usize,
) -> PyResult<PyAllocator> {
    ensure_memory(py)?;
    for (name, address) in [("malloc", Some(malloc)), ("free", Some(free)), ("calloc", calloc)] {
        if address == Some(0) {
            return Err(PyValueError::new_err(format!("from_functions() got {name}=0, where no function is")));
        }
    }
    // SAFETY: function pointers are addresses, and these are not null; that functions of these types are there, keep malloc's contract
    // in any thread and stay loaded is what the docstring demands of the program, as ctypes does.
    unsafe {
        let table = FunctionsTable {
            malloc: transmute_copy(&malloc),
            calloc: calloc.map(|calloc| transmute_copy(&calloc)),
            free: transmute_copy(&free),
            context: std::ptr::with_exposed_provenance_mut(context),
        };
        Ok(PyAllocator::ours(Functions::new(table, gil::aside)))
    }
}

/// Adds the functions of the declaration to the module.
pub fn begin(module: &Bound<'_, PyModule>) -> PyResult<()> {
    firsttouch::adaptors::set_call_sites(CallSites { site: call_sites::site, place: call_sites::as_text });
    let functions = functions(module.py())?;
    module.py().import("sys")?.getattr("modules")?.set_item("firsttouch._allocators", &functions)?;
    module.setattr("_allocators", functions) // as an attribute alone: `add` would make it public
}
