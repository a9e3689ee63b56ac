//! The factories of allocators.

use crate::allocator::PyAllocator;
use crate::install::process_pool;
use crate::memory_out::{self, Name, PyTypeError, PyValueError};
use crate::stacks::kind;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::allocator::Allocator;
use firsttouch::size;
use firsttouch::sources::{Aligned, Calloc, Malloc, Pages};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// A size in bytes, given as a number or as text.
pub fn bytes(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Ok(text) = value.extract::<String>() {
        return size::parse(&text).map_err(|message| PyValueError::new_err(format!("{name}: {message}")));
    }
    let wrong_type = || {
        let kind = value.get_type().to_string();
        PyTypeError::new_err(format!("{name} is {kind}: give a number of bytes, text like \"4 GiB\", or None"))
    };
    if value.is_instance_of::<PyBool>() {
        return Err(wrong_type());
    }
    let number = value.call_method0(Name("__index__")).map_err(|_| wrong_type())?;
    number.extract::<usize>().map_err(|_| {
        PyValueError::new_err(format!(
            "{name}={number} is not a number of bytes: give 0 or more, or text like \"4 GiB\""
        ))
    })
}

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
    memory_out::check(huge.py())?;
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
    memory_out::check(alignment.py())?;
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
    memory_out::check(py)?;
    let mut options = Options::default();
    let mut over = None;
    if let Some(upstream) = upstream {
        // Pages it takes itself: then it can split blocks, join them, and give back parts.
        match upstream.native().and_then(kind::<Pages>) {
            Some(pages) => options.huge = pages.huge(),
            None => over = Some(stands_on("pool", upstream)?),
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

/// The Rust half of what an adaptor stands on.
pub fn stands_on(adaptor: &str, upstream: &PyAllocator) -> PyResult<Arc<dyn Allocator>> {
    upstream.native().cloned().ok_or_else(|| {
        PyTypeError::new_err(format!(
            "{adaptor}() can't stand on {}: it takes one of firsttouch's allocators, like pool() or malloc()",
            upstream.expression()
        ))
    })
}

#[pyfunction]
fn numpy_default() -> PyAllocator {
    PyAllocator::numpy()
}

#[pyfunction]
fn default_pool() -> PyAllocator {
    PyAllocator::ours(process_pool().clone())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(pages, module)?)?;
    module.add_function(wrap_pyfunction!(malloc, module)?)?;
    module.add_function(wrap_pyfunction!(calloc, module)?)?;
    module.add_function(wrap_pyfunction!(aligned, module)?)?;
    module.add_function(wrap_pyfunction!(pool, module)?)?;
    module.add_function(wrap_pyfunction!(numpy_default, module)?)?;
    module.add_function(wrap_pyfunction!(default_pool, module)?)
}
