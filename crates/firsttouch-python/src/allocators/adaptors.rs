//! The factories of adaptors.

use crate::allocators::allocator::PyAllocator;
use crate::python::call_sites;
use crate::python::errors::PyValueError;
use crate::python::global_allocator::ensure_memory;
use crate::python::sizes::bytes;
use firsttouch::adaptors::{Filled, Guarded, GuardedOptions, Limited, Side, Tracked};
use pyo3::prelude::*;
use pyo3::types::PyBool;

#[pyfunction]
fn tracked(py: Python<'_>, upstream: &PyAllocator, lines: bool) -> PyResult<PyAllocator> {
    ensure_memory(py)?;
    let site: Option<fn() -> u64> = if lines { Some(call_sites::site) } else { None };
    Ok(PyAllocator::ours(Tracked::new(upstream.require_native("tracked")?, site)))
}

#[pyfunction]
fn limited(upstream: &PyAllocator, budget: &Bound<'_, PyAny>) -> PyResult<PyAllocator> {
    ensure_memory(budget.py())?;
    let budget = bytes("budget", budget)?;
    if budget == 0 {
        return Err(PyValueError::new_err(
            "budget=0 would serve nothing: give a number of bytes, or text like \"4 GiB\"",
        ));
    }
    Ok(PyAllocator::ours(Limited::new(upstream.require_native("limited")?, budget)))
}

#[pyfunction]
fn guarded(upstream: &PyAllocator, side: &str, keep: &Bound<'_, PyAny>) -> PyResult<PyAllocator> {
    ensure_memory(keep.py())?;
    let side = match side {
        "after" => Side::After,
        "before" => Side::Before,
        _ => {
            return Err(PyValueError::new_err(format!(
                "side={side:?}: give \"after\" (arrays end at an inaccessible page) or \"before\" (they begin after one)"
            )));
        }
    };
    let options = GuardedOptions { side, keep: bytes("keep", keep)? };
    Ok(PyAllocator::ours(Guarded::new(upstream.require_native("guarded")?, options)))
}

/// A byte that fills memory, or nothing.
fn pattern(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u8>> {
    value
        .map(|value| {
            let byte = (!value.is_instance_of::<PyBool>()).then(|| value.extract::<u8>().ok()).flatten();
            byte.ok_or_else(|| {
                let given = value.repr().map_or_else(|_| String::new(), |text| text.to_string());
                PyValueError::new_err(format!(
                    "{name}={given} is not a byte: give 0 to 255, or None to leave memory as it is"
                ))
            })
        })
        .transpose()
}

#[pyfunction]
#[pyo3(signature = (upstream, on_allocate, on_free))]
fn filled(
    py: Python<'_>,
    upstream: &PyAllocator,
    on_allocate: Option<&Bound<'_, PyAny>>,
    on_free: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyAllocator> {
    ensure_memory(py)?;
    let (on_allocate, on_free) = (pattern("on_allocate", on_allocate)?, pattern("on_free", on_free)?);
    Ok(PyAllocator::ours(Filled::new(upstream.require_native("filled")?, on_allocate, on_free)))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(tracked, module)?)?;
    module.add_function(wrap_pyfunction!(limited, module)?)?;
    module.add_function(wrap_pyfunction!(guarded, module)?)?;
    module.add_function(wrap_pyfunction!(filled, module)?)
}
