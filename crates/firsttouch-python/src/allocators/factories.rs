//! The factories of allocators.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::downcast::downcast;
use crate::python::errors::PyValueError;
use crate::python::global_allocator::ensure_memory;
use crate::python::sizes::bytes;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::allocator::Allocator;
use firsttouch::sources::{Aligned, Calloc, Malloc, Pages};
use pyo3::prelude::*;
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
    Ok(PyAllocator::ours(Arc::new(source)))
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

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(pages, module)?)?;
    module.add_function(wrap_pyfunction!(malloc, module)?)?;
    module.add_function(wrap_pyfunction!(calloc, module)?)?;
    module.add_function(wrap_pyfunction!(aligned, module)?)?;
    module.add_function(wrap_pyfunction!(pool, module)?)?;
    module.add_function(wrap_pyfunction!(numpy_default, module)?)
}
