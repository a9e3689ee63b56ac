//! The factories of allocators and adaptors.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::queries::downcast;
use crate::python::call_sites;
use crate::python::errors::PyValueError;
use crate::python::global_allocator::ensure_memory;
use crate::python::sizes::bytes;
use firsttouch::adaptors::{Filled, Guarded, GuardedOptions, Limited, Options, Pool, Side, Tracked};
use firsttouch::allocator::Allocator;
use firsttouch::sources::{Aligned, Calloc, Malloc, Pages};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Whether `huge=` asks for transparent huge pages.
fn wants_huge(huge: &Bound<'_, PyAny>) -> PyResult<bool> {
    if huge.extract::<bool>().is_ok_and(|huge| !huge) {
        return Ok(false);
    }
    if huge.extract::<String>().is_ok_and(|text| text == "thp") {
        return Ok(true);
    }
    Err(PyValueError::new_err(format!("huge={}: give False or \"thp\" (transparent huge pages)", huge.repr()?)))
}

#[pyfunction]
fn pages(huge: &Bound<'_, PyAny>) -> PyResult<PyAllocator> {
    ensure_memory(huge.py())?;
    Ok(PyAllocator::ours(Pages::new(wants_huge(huge)?)))
}

#[pyfunction]
fn malloc() -> PyAllocator {
    static ONE: LazyLock<Arc<dyn Allocator>> = LazyLock::new(|| Arc::new(Malloc));
    PyAllocator::ours(ONE.clone()) // it has no state, so that all are one
}

#[pyfunction]
fn calloc() -> PyAllocator {
    static ONE: LazyLock<Arc<dyn Allocator>> = LazyLock::new(|| Arc::new(Calloc));
    PyAllocator::ours(ONE.clone())
}

#[pyfunction]
fn aligned(alignment: &Bound<'_, PyAny>) -> PyResult<PyAllocator> {
    ensure_memory(alignment.py())?;
    let align = bytes("alignment", alignment)?;
    let source = Aligned::new(align).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyAllocator::ours(source))
}

#[pyfunction]
#[pyo3(signature = (upstream=None, *, max_idle=None, decay=None, never=false))]
fn pool(
    py: Python<'_>,
    upstream: Option<&PyAllocator>,
    max_idle: Option<&Bound<'_, PyAny>>,
    decay: Option<f64>,
    never: bool,
) -> PyResult<PyAllocator> {
    ensure_memory(py)?;
    let mut options = Options::default();
    let mut over = None;
    if let Some(upstream) = upstream {
        // Pages it takes itself: then it can split blocks, join them, and give back parts.
        match upstream.native().and_then(downcast::<Pages>) {
            Some(pages) => options.huge = pages.huge(),
            None => over = Some(upstream.require_native("pool")?),
        }
    }
    options.max_idle = max_idle.map(|value| bytes("max_idle", value)).transpose()?;
    if let Some(seconds) = decay {
        options.decay = Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            PyValueError::new_err(format!("decay={seconds} is not a time: give seconds, 0 or more, or None for never"))
        })?);
    }
    if never {
        options.decay = None;
    }
    Ok(PyAllocator::ours(match over {
        Some(upstream) => Pool::over(upstream, options),
        None => Pool::new(options),
    }))
}

#[pyfunction]
fn numpy_default() -> PyAllocator {
    PyAllocator::numpy()
}

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
            "budget=0 allows no allocation: give a number of bytes, or text like \"4 GiB\"",
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
    module.add_function(wrap_pyfunction!(pages, module)?)?;
    module.add_function(wrap_pyfunction!(malloc, module)?)?;
    module.add_function(wrap_pyfunction!(calloc, module)?)?;
    module.add_function(wrap_pyfunction!(aligned, module)?)?;
    module.add_function(wrap_pyfunction!(pool, module)?)?;
    module.add_function(wrap_pyfunction!(numpy_default, module)?)?;
    module.add_function(wrap_pyfunction!(tracked, module)?)?;
    module.add_function(wrap_pyfunction!(limited, module)?)?;
    module.add_function(wrap_pyfunction!(guarded, module)?)?;
    module.add_function(wrap_pyfunction!(filled, module)?)
}
