//! Pages that exist: onto huge ones, onto other nodes, and where they are.

use super::making::policy;
use super::waiting::interruptible;
use crate::allocator::PyAllocator;
use crate::memory_out::{Given, PyOSError};
use firsttouch::adaptors::{Filled, Limited, Tracked};
use firsttouch::allocator::Allocator;
use firsttouch::numa::policy::{Orders, Outer};
use firsttouch::numa::topology::Topology;
use firsttouch::pages::collapse;
use firsttouch::pages::migration::{self, Axis};
use firsttouch::pages::receipt::Reason;
use firsttouch::sources::PlacedPages;
use pyo3::prelude::*;
use std::any::Any;
use std::sync::Arc;

/// Bytes of a range that are on huge pages after this, and why the others are not.
#[pyfunction]
fn collapse_range(address: usize, nbytes: usize) -> PyResult<Given<(usize, Option<String>)>> {
    let (huge, why_not) = interruptible(None, &mut |go_on| collapse::collapse((address, nbytes), go_on))?;
    Ok(Given((huge, why_not.map(|reason| reason.to_string()))))
}

/// The placed pages whose blocks go back to them as they are freed: what a pool keeps will be somebody else's.
fn whose(native: &Arc<dyn Allocator>) -> Option<&PlacedPages> {
    let any: &dyn Any = native.as_ref();
    let passes = any.is::<Tracked>() || any.is::<Limited>() || any.is::<Filled>();
    any.downcast_ref().or_else(|| native.upstream().filter(|_| passes).and_then(whose))
}

/// Bytes that moved, that were there, that are not real, that could not be moved, and why.
type Moved = (usize, usize, usize, usize, Option<String>);

/// Moves pages to where a policy says, slabs along an axis of `items` items `stride` bytes apart. Bytes that moved, that
/// were there, that are not real, that could not be moved, and why.
#[pyfunction]
#[pyo3(signature = (address, nbytes, numa, axis=None, allocator=None))]
fn migrate_range(
    address: usize,
    nbytes: usize,
    numa: &str,
    axis: Option<(usize, usize)>,
    allocator: Option<&PyAllocator>,
) -> PyResult<Given<Moved>> {
    let refused = |reason: Reason| PyOSError::new_err(format!("the pages could not be moved to {numa}: {reason}"));
    let orders = policy(numa)?.within(&Outer::now(Topology::read().with_memory())).map_err(refused)?;
    let orders = Orders { axis: axis.map(|(stride, items)| Axis { stride, items }), ..orders };
    // Pages that are not there yet follow, where the block is a mapping of its own.
    if let Some(pages) = allocator.and_then(PyAllocator::native).and_then(whose)
        && pages.receipt(address).is_some_and(|(start, receipt)| (start, receipt.asked) == (address, nbytes))
    {
        let _ = pages.rebind(address, &orders); // the pages that are there tell whether it worked
    }
    let done = interruptible(None, &mut |go_on| migration::migrate((address, nbytes), &orders, None, go_on))?;
    let sum = done.map_err(|error| refused(Reason::of(error)))?;
    Ok(Given((sum.moved, sum.stayed, sum.absent, sum.failed, sum.why_not.map(|reason| reason.to_string()))))
}

/// The node of each page of a range; negative where none of its own is there.
#[pyfunction]
fn nodes_of_range(py: Python<'_>, address: usize, nbytes: usize) -> PyResult<Given<Vec<i32>>> {
    let (start, size) = migration::whole_pages(address, nbytes);
    py.detach(|| migration::nodes_of(start, size))
        .map(Given)
        .map_err(|error| PyOSError::new_err(format!("move_pages: {}", Reason::of(error))))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(collapse_range, module)?)?;
    module.add_function(wrap_pyfunction!(migrate_range, module)?)?;
    module.add_function(wrap_pyfunction!(nodes_of_range, module)?)
}
