//! The core's factories, called with Python objects, and those that only Python has.

#![allow(unsafe_code)] // Safety: addresses of functions are taken on their giver's word.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::arguments::{PyArgument, given, raised};
use crate::python::call_sites;
use crate::python::global_allocator::ensure_memory;
use crate::python::pending;
use crate::python::values::IntoPython;
use firsttouch::adaptors::CallSites;
use firsttouch::factory::{self, Argument};
use firsttouch::sources::{Functions, FunctionsTable, PlacedPages};
use firsttouch::spec::{self, ALLOCATORS, Spec};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

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
pub fn call<'a>(arguments: &'a Arguments<'_>) -> Vec<(Option<&'a str>, &'a dyn Argument)> {
    arguments.iter().map(|(name, object)| (name.as_deref(), object as _)).collect()
}

/// Makes an allocator of the core's by its name.
#[pyfunction]
#[pyo3(signature = (name, *by_place, **by_name))]
fn make(name: &str, by_place: &Bound<'_, PyTuple>, by_name: Option<&Bound<'_, PyDict>>) -> PyResult<PyAllocator> {
    ensure_memory(by_place.py())?;
    let spec = Spec::find(name).ok_or_else(|| raised(factory::no_allocator(name, &[])))?;
    let arguments = collect(by_place, by_name)?;
    factory::build(spec, &call(&arguments)).map(PyAllocator::ours).map_err(raised)
}

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
    pending::prepare_aside();
    // SAFETY: the functions keep malloc's contract in any thread, and stay loaded: the docstring of `from_functions`
    // demands it of the program.
    Ok(PyAllocator::ours(unsafe { Functions::with_free_inside(table, pending::aside) }))
}

#[pyfunction]
fn numpy_default() -> PyAllocator {
    PyAllocator::numpy()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    spec::set_call_sites(CallSites { site: call_sites::site, place: call_sites::file_and_line });
    let names: Vec<&str> = ALLOCATORS.iter().map(|spec| spec.name).collect();
    module.add("FACTORIES", names.into_python(module.py())?)?;
    module.add_function(wrap_pyfunction!(make, module)?)?;
    module.add_function(wrap_pyfunction!(placed_pages, module)?)?;
    module.add_function(wrap_pyfunction!(recycled_upstream, module)?)?;
    module.add_function(wrap_pyfunction!(from_functions, module)?)?;
    module.add_function(wrap_pyfunction!(numpy_default, module)?)
}
