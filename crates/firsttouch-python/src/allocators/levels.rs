//! The levels of a stack of adaptors: the tally of `tracked`, the overruns that `guarded` found, each upstream.

use crate::allocators::allocator::PyAllocator;
use crate::python::call_sites;
use crate::python::errors::{PyTypeError, out_of_memory};
use crate::python::values::{Dict, ToPython};
use firsttouch::adaptors::{Guarded, Tracked};
use firsttouch::allocator::Allocator;
use firsttouch::allocator::{downcast, find};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::any::Any;
use std::sync::Arc;

fn found<'a, T: Any>(allocator: &'a PyAllocator, name: &str) -> PyResult<&'a T> {
    allocator.native().and_then(find).ok_or_else(|| {
        PyTypeError::new_err(format!("there is no {name}() in {}: put it around the allocator", allocator.expression()))
    })
}

/// The counts of the outermost `tracked` in a stack.
#[pyfunction]
fn tally<'py>(py: Python<'py>, allocator: &PyAllocator) -> PyResult<Bound<'py, PyDict>> {
    let tally = found::<Tracked>(allocator, "tracked")?.tally();
    let dict = Dict::new(py)?;
    dict.set_item("live_blocks", tally.live_blocks)?;
    dict.set_item("live_bytes", tally.live_bytes)?;
    dict.set_item("peak_bytes", tally.peak_bytes)?;
    dict.set_item("allocations", tally.allocations)?;
    dict.set_item("allocated_bytes", tally.allocated_bytes)?;
    dict.set_item("histogram", tally.sizes.to_vec())?;
    Ok(dict.done())
}

/// Address, bytes, file and line.
type LiveBlock = (usize, usize, Option<String>, i32);

/// Live blocks of the outermost `tracked`: address, bytes, and file and line where they are noted.
#[pyfunction]
fn living(py: Python<'_>, allocator: &PyAllocator) -> PyResult<ToPython<Vec<LiveBlock>>> {
    let living = found::<Tracked>(allocator, "tracked")?.living().map_err(|_| out_of_memory(py))?;
    let each = living.into_iter().map(|block| {
        let place = call_sites::place(py, block.site);
        let (file, line) = place.map_or((None, 0), |(file, line)| (Some(file), line));
        (block.address, block.asked, file, line)
    });
    Ok(ToPython(each.collect()))
}

/// Writes beyond arrays that the outermost `guarded` found in its canaries: address, bytes asked, and where it was hit.
#[pyfunction]
fn overruns(allocator: &PyAllocator) -> PyResult<ToPython<Vec<(usize, usize, usize)>>> {
    let hits = found::<Guarded>(allocator, "guarded")?.check();
    Ok(ToPython(hits.into_iter().map(|hit| (hit.address, hit.asked, hit.at)).collect()))
}

/// The upstream of an adaptor.
#[pyfunction]
fn upstream(allocator: &PyAllocator) -> Option<PyAllocator> {
    allocator.native().and_then(|native| native.upstream()).cloned().map(PyAllocator::ours)
}

/// The allocator's own part of its expression, without the upstream.
#[pyfunction]
fn level(allocator: &PyAllocator) -> String {
    allocator.native().map_or_else(|| allocator.expression(), |native| native.describe().level().to_string())
}

/// Whether an allocator is `tracked` itself.
#[pyfunction]
fn is_tracked(allocator: &PyAllocator) -> bool {
    allocator.native().and_then(downcast::<Tracked>).is_some()
}

/// Whether it stands for another library's memory handler.
#[pyfunction]
fn is_foreign(allocator: &PyAllocator) -> bool {
    allocator.is_foreign()
}

/// Whether an expression makes such an allocator, in this process or another.
#[pyfunction]
fn has_expression(allocator: &PyAllocator) -> bool {
    let told = |native: &Arc<dyn Allocator>| native.describe().is_expression();
    allocator.native().map_or(!allocator.is_foreign(), told)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(tally, module)?)?;
    module.add_function(wrap_pyfunction!(living, module)?)?;
    module.add_function(wrap_pyfunction!(overruns, module)?)?;
    module.add_function(wrap_pyfunction!(level, module)?)?;
    module.add_function(wrap_pyfunction!(is_tracked, module)?)?;
    module.add_function(wrap_pyfunction!(is_foreign, module)?)?;
    module.add_function(wrap_pyfunction!(has_expression, module)?)?;
    module.add_function(wrap_pyfunction!(upstream, module)?)
}
