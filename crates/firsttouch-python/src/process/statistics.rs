//! Statistics of allocators, for Python to render.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::process_pool::{process_pool, small_limit};
use crate::handlers::front::installed;
use crate::python::values::{Dict, ToPython};
use firsttouch::allocator::Allocator;
use firsttouch::failure;
use firsttouch::heap::bound;
use firsttouch::stats::Stats;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// The allocator that serves the process, or else its pool.
fn serving() -> Arc<dyn Allocator> {
    installed().unwrap_or_else(|| process_pool().clone())
}

/// The statistics of an allocator as a dict; by default the one that serves the process.
#[pyfunction]
#[pyo3(signature = (allocator=None))]
fn stats<'py>(py: Python<'py>, allocator: Option<&PyAllocator>) -> PyResult<Bound<'py, PyDict>> {
    let stats = match allocator {
        None => serving().stats(),
        Some(wrapped) => wrapped.native().map_or_else(Stats::default, |native| native.stats()),
    };
    let dict = Dict::new(py)?;
    for (name, value) in stats.figures().into_iter().chain([("small_limit", small_limit() as u64)]) {
        dict.set_item(name, value)?;
    }
    Ok(dict.done())
}

/// Returns an allocator's idle memory to the operating system; by default that of the one that serves the process.
/// Returns the number of bytes.
#[pyfunction]
#[pyo3(signature = (allocator=None))]
fn trim(py: Python<'_>, allocator: Option<&PyAllocator>) -> ToPython<usize> {
    let native = allocator.map_or_else(|| Some(serving()), |wrapped| wrapped.native().cloned());
    ToPython(py.detach(|| native.map_or(0, |native| native.trim())))
}

/// Sets the bytes of resident memory at which pools keep nothing idle; `None` for no bound.
#[pyfunction]
#[pyo3(signature = (nbytes))]
fn set_memory_bound(nbytes: Option<usize>) {
    bound::set(nbytes);
}

/// The last request that failed: bytes asked, the limit's name, and the whole reason.
#[pyfunction]
fn last_failure() -> ToPython<Option<(usize, &'static str, String)>> {
    let told = failure::last().zip(failure::last_reason());
    ToPython(told.map(|(error, reason)| (error.asked, error.limit_name(), reason)))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(stats, module)?)?;
    module.add_function(wrap_pyfunction!(trim, module)?)?;
    module.add_function(wrap_pyfunction!(set_memory_bound, module)?)?;
    module.add_function(wrap_pyfunction!(last_failure, module)?)
}
