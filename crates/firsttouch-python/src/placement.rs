//! Placement: placed pages and their receipts, touching and migrating existing pages, and the NUMA topology.

use crate::allocators::allocator::PyAllocator;
use crate::python::values::{PyMemoryError, PyValueError};
use firsttouch::adaptors::{Filled, Limited, Origin};
use firsttouch::allocator::{Allocator, find};
use firsttouch::numa::policy::{Outer, Policy};
use firsttouch::numa::topology::Topology;
use firsttouch::os;
use firsttouch::pages::migration::{self, migrate};
use firsttouch::pages::placement::{Page, Placement};
use firsttouch::pages::receipt::{self, Reason, Receipt};
use firsttouch::pages::touch::{self, Job, Way};
use firsttouch::size::Bytes;
use firsttouch::sources::Pages;
use firsttouch::why::why;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::any::Any;
use std::sync::Arc;

// ---- Placed pages: the receipts of what was granted ------------------------------------------------------------------

fn policy(text: &str) -> PyResult<Policy> {
    let policy = Policy::parse(text).map_err(PyValueError::new_err)?;
    policy.check(&Topology::read()).map_err(PyValueError::new_err)?;
    Ok(policy)
}

fn page_name(page: Page) -> Option<String> {
    (page != Page::Base).then(|| page.to_string().trim_matches('\'').to_owned())
}

fn receipt_dict<'py>(py: Python<'py>, asked: &Placement, got: &Receipt) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("nbytes", got.asked)?;
    dict.set_item("mapped", got.bytes)?;
    dict.set_item("asked", asked.to_string())?;
    dict.set_item("huge", page_name(got.page))?;
    let nodes = got.nodes.map(|(mode, nodes)| {
        let name = format!("{mode:?}").to_ascii_lowercase();
        if mode == os::Mode::Local { name } else { format!("{name}:{nodes}") }
    });
    dict.set_item("numa", nodes)?;
    dict.set_item("populated", got.populate == receipt::Outcome::Granted)?;
    dict.set_item("threads", got.threads)?;
    dict.set_item("locked", got.lock == receipt::Outcome::Granted)?;
    dict.set_item("why_not", got.why_not())?;
    Ok(dict)
}

/// The receipt of the block that contains `address`; `None` if there are no placed pages at the bottom of `allocator`.
#[pyfunction]
pub fn receipt_of<'py>(
    py: Python<'py>,
    allocator: &PyAllocator,
    address: usize,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(pages) = allocator.native().and_then(find::<Pages>) else { return Ok(None) };
    pages.receipt(address).map(|(_, receipt)| receipt_dict(py, pages.placement(), &receipt)).transpose()
}

/// Bytes asked, bytes of the span, whether huge pages were asked for, and where the memory came from.
type BlockOrigin = (usize, usize, bool, String);

/// Why the block that begins at `address` lies there; `None` where it is neither a pool's nor of pages.
#[pyfunction]
pub fn origin_of(address: usize) -> Option<BlockOrigin> {
    let found = why(address)?;
    let huge = matches!(found.origin, Origin::Credit | Origin::Precedent | Origin::Exchanged);
    Some((found.asked, found.span.1, huge, found.origin.to_string()))
}

// ---- Pages that exist: touched, moved to other nodes ----------------------------------------------

/// Touches the pages of a range, as by a write or by a read. Returns the threads that worked, and whether the kernel did it.
#[pyfunction]
pub fn touch_range(
    py: Python<'_>,
    address: usize,
    nbytes: usize,
    write: bool,
    threads: Option<usize>,
) -> PyResult<(usize, bool)> {
    let (address, size) = migration::whole_pages(address, nbytes);
    if size == 0 {
        return Ok((0, true));
    }
    if let Some((missing, available)) = migration::lacking(address, size) {
        return Err(PyMemoryError::new_err(format!(
            "cannot touch {}: {} of them are not resident, and {} are available in this machine or its memory cgroup",
            Bytes(nbytes),
            Bytes(missing),
            Bytes(available)
        )));
    }
    let job = Job { address, size, step: os::page_size(), way: if write { Way::Write } else { Way::Read }, threads };
    #[allow(unsafe_code)]
    // SAFETY: the caller's array keeps its memory, and can be written where `write` says so.
    let done = py.detach(|| unsafe { touch::make_real(job) });
    done.map(|done| (done.threads, done.by_kernel)).map_err(|error| match Reason::of(error) {
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

/// The placed pages, if freed blocks return to them at once: a block kept by a pool will serve another array.
fn whose(native: &Arc<dyn Allocator>) -> Option<&Pages> {
    let any: &dyn Any = native.as_ref();
    let passes = any.is::<Limited>() || any.is::<Filled>();
    any.downcast_ref().or_else(|| native.upstream().filter(|_| passes).and_then(whose))
}

/// Bytes that were moved, were in place, are not resident, could not be moved, and why.
type MovedBytes = (usize, usize, usize, usize, Option<String>);

/// Moves pages according to a policy. Returns the bytes that were moved, were in place, are not resident, could not be moved,
/// and why.
#[pyfunction]
#[pyo3(signature = (address, nbytes, numa, allocator=None))]
pub fn migrate_range(
    py: Python<'_>,
    address: usize,
    nbytes: usize,
    numa: &str,
    allocator: Option<&PyAllocator>,
) -> PyResult<MovedBytes> {
    let refused = |reason: Reason| PyOSError::new_err(format!("cannot move the pages to {numa}: {reason}"));
    let orders = policy(numa)?.within(&Outer::now(Topology::read().with_memory())).map_err(refused)?;
    // Pages that are not resident yet follow, if the block is a mapping of its own.
    if let Some(pages) = allocator.and_then(PyAllocator::native).and_then(whose)
        && pages.receipt(address).is_some_and(|(start, receipt)| (start, receipt.asked) == (address, nbytes))
    {
        let _ = pages.rebind(address, &orders); // the resident pages show whether it worked
    }
    let done = py.detach(|| migrate((address, nbytes), &orders));
    let sum = done.map_err(|error| refused(Reason::of(error)))?;
    Ok((sum.moved, sum.stayed, sum.absent, sum.failed, sum.why_not.map(|reason| reason.to_string())))
}

// ---- The NUMA nodes there are --------------------------------------------------

type NodeRow = (usize, Vec<usize>, Option<(usize, usize, usize)>, Vec<usize>);

/// Nodes that are online: number, processors, memory (total, free, available), distances.
#[pyfunction]
pub fn numa_nodes() -> Vec<NodeRow> {
    let row = |node: &firsttouch::numa::topology::Node| {
        let memory = node.memory.map(|memory| (memory.total, memory.free, memory.available));
        (node.number, node.processors.iter().collect(), memory, node.distances.clone())
    };
    Topology::read().nodes.iter().map(row).collect()
}

/// Return the NUMA node of the processor that the current thread runs on.
///
/// Returns
/// -------
/// int
///
/// See Also
/// --------
/// topology : All nodes.
///
/// Examples
/// --------
/// >>> ft.placement.current_node() <= ft.placement.highest_node()
/// True
#[pyfunction]
pub fn current_node() -> usize {
    os::current_node()
}

/// Return the highest number of a NUMA node that is online.
///
/// Returns
/// -------
/// int
///
/// See Also
/// --------
/// topology : All nodes.
///
/// Examples
/// --------
/// >>> len(ft.placement.topology()) <= ft.placement.highest_node() + 1
/// True
#[pyfunction]
pub fn highest_node() -> usize {
    Topology::read().highest()
}
