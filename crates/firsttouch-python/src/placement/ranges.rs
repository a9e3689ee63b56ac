//! Pages that exist: touched, collapsed into huge ones, moved to other nodes, and where they are.

use crate::allocators::allocator::PyAllocator;
use crate::placement::placed_pages::policy;
use crate::python::errors::{PyMemoryError, PyOSError};
use crate::python::interrupts::interruptible;
use crate::python::values::ToPython;
use firsttouch::adaptors::{Filled, Limited, Tracked};
use firsttouch::allocator::Allocator;
use firsttouch::heap::nodes::{collapse, migrate};
use firsttouch::numa::policy::{Orders, Outer};
use firsttouch::numa::topology::Topology;
use firsttouch::os;
use firsttouch::pages::migration::{self, Axis};
use firsttouch::pages::receipt::Reason;
use firsttouch::pages::touch::{self, Job, Pattern, Way};
use firsttouch::size::Bytes;
use firsttouch::sources::PlacedPages;
use pyo3::prelude::*;
use std::any::Any;
use std::sync::Arc;

/// Touches the pages of a range, as by a write or by a read. Returns the threads that worked, and whether the kernel did it.
///
/// `progress` is called with the bytes done so far.
#[pyfunction]
fn touch_range(
    address: usize,
    nbytes: usize,
    write: bool,
    threads: Option<usize>,
    slabs: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<ToPython<(usize, bool)>> {
    let (address, size) = migration::whole_pages(address, nbytes);
    if size == 0 {
        return Ok(ToPython((0, true)));
    }
    if let Some((missing, available)) = migration::lacking(address, size) {
        return Err(PyMemoryError::new_err(format!(
            "cannot touch {}: {} of them are not resident, and {} are available in this machine or its memory cgroup",
            Bytes(nbytes),
            Bytes(missing),
            Bytes(available)
        )));
    }
    let job = Job {
        address,
        size,
        step: os::page_size(),
        way: if write { Way::Write } else { Way::Read },
        threads,
        processors: None,
        pattern: if slabs { Pattern::Static } else { Pattern::Dynamic },
    };
    let mut run = |go_on: touch::GoOn<'_>| {
        #[allow(unsafe_code)]
        // SAFETY: the caller's array keeps its memory, and can be written where `write` says so.
        unsafe {
            touch::make_real(job, go_on)
        }
    };
    let done = interruptible(progress, &mut run)?;
    done.map(|done| ToPython((done.threads, done.by_kernel))).map_err(|error| match Reason::of(error) {
        Reason::Errno(code) if code == os::Errno::BAD_ADDRESS.0 => PyMemoryError::new_err(format!(
            "cannot touch {}: a mapped file is shorter now than it was, or its file system or the pool of huge pages \
             is full (errno {code})",
            Bytes(nbytes)
        )),
        Reason::Errno(code) if code == os::Errno::NO_MEMORY.0 => PyMemoryError::new_err(format!(
            "cannot touch {}: there is no memory for them, or some of them are not mapped (errno {code})",
            Bytes(nbytes)
        )),
        reason => PyOSError::new_err(format!("cannot touch {}: {reason}", Bytes(nbytes))),
    })
}

/// Bytes of a range that are on huge pages after this, and why the others are not.
#[pyfunction]
fn collapse_range(address: usize, nbytes: usize) -> PyResult<ToPython<(usize, Option<String>)>> {
    let (huge, why_not) = interruptible(None, &mut |go_on| collapse((address, nbytes), go_on))?;
    Ok(ToPython((huge, why_not.map(|reason| reason.to_string()))))
}

/// The placed pages, if freed blocks return to them at once: a block kept by a pool will serve another array.
fn whose(native: &Arc<dyn Allocator>) -> Option<&PlacedPages> {
    let any: &dyn Any = native.as_ref();
    let passes = any.is::<Tracked>() || any.is::<Limited>() || any.is::<Filled>();
    any.downcast_ref().or_else(|| native.upstream().filter(|_| passes).and_then(whose))
}

/// Bytes that were moved, were in place, are not resident, could not be moved, and why.
type MovedBytes = (usize, usize, usize, usize, Option<String>);

/// Moves pages according to a policy, with slabs along an axis of `items` items, `stride` bytes apart. Returns the
/// bytes that were moved, were in place, are not resident, could not be moved, and why.
#[pyfunction]
#[pyo3(signature = (address, nbytes, numa, axis=None, allocator=None))]
fn migrate_range(
    address: usize,
    nbytes: usize,
    numa: &str,
    axis: Option<(usize, usize)>,
    allocator: Option<&PyAllocator>,
) -> PyResult<ToPython<MovedBytes>> {
    let refused = |reason: Reason| PyOSError::new_err(format!("cannot move the pages to {numa}: {reason}"));
    let orders = policy(numa)?.within(&Outer::now(Topology::read().with_memory())).map_err(refused)?;
    let orders = Orders { axis: axis.map(|(stride, items)| Axis { stride, items }), ..orders };
    // Pages that are not resident yet follow, if the block is a mapping of its own.
    if let Some(pages) = allocator.and_then(PyAllocator::native).and_then(whose)
        && pages.receipt(address).is_some_and(|(start, receipt)| (start, receipt.asked) == (address, nbytes))
    {
        let _ = pages.rebind(address, &orders); // the resident pages show whether it worked
    }
    let done = interruptible(None, &mut |go_on| migrate((address, nbytes), &orders, go_on))?;
    let sum = done.map_err(|error| refused(Reason::of(error)))?;
    Ok(ToPython((sum.moved, sum.stayed, sum.absent, sum.failed, sum.why_not.map(|reason| reason.to_string()))))
}

/// The node of each page of a range; negative if it is not resident.
#[pyfunction]
fn nodes_of_range(py: Python<'_>, address: usize, nbytes: usize) -> PyResult<ToPython<Vec<i32>>> {
    let (start, size) = migration::whole_pages(address, nbytes);
    py.detach(|| migration::nodes_of(start, size))
        .map(ToPython)
        .map_err(|error| PyOSError::new_err(format!("move_pages: {}", Reason::of(error))))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(touch_range, module)?)?;
    module.add_function(wrap_pyfunction!(collapse_range, module)?)?;
    module.add_function(wrap_pyfunction!(migrate_range, module)?)?;
    module.add_function(wrap_pyfunction!(nodes_of_range, module)?)
}
