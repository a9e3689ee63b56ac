//! Placement: placed pages and their receipts, touching and migrating existing pages, and the NUMA topology.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::factories;
use crate::handlers::capsules::get_allocator;
use crate::numpy::NumPy;
use crate::python::values::{PyMemoryError, PyValueError};
use firsttouch::allocator::find;
use firsttouch::numa::{Policy, Topology};
use firsttouch::os;
use firsttouch::pages::migration::{self, migrate};
use firsttouch::pages::placement::{Page, Placement, Reason, Receipt};
use firsttouch::pages::touch::{lacking, prefault};
use firsttouch::size::Bytes;
use firsttouch::sources::Pages;
use firsttouch::why::why;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

fn page_name(page: Page) -> Option<String> {
    (page != Page::Base).then(|| page.to_string().trim_matches('\'').to_owned())
}

/// The fields of a receipt, in order.
type ReceiptFields<'py> =
    (usize, usize, String, Option<String>, Option<String>, bool, usize, bool, Bound<'py, PyTuple>, String);

fn of_pages<'py>(py: Python<'py>, asked: &Placement, got: &Receipt) -> PyResult<ReceiptFields<'py>> {
    let nodes = got.policy.map(|policy| policy.to_string());
    let (locked, asked, origin) = (asked.lock, asked.to_string(), "pages that were mapped as asked".to_owned());
    let (huge, why_not) = (page_name(got.page), PyTuple::new(py, got.why_not())?);
    Ok((got.asked, got.bytes, asked, huge, nodes, got.threads > 0, got.threads, locked, why_not, origin))
}

/// The receipt of an array's memory: of the placed pages at `address`, or of a pool's block; `None` if it comes from neither.
#[pyfunction]
pub fn receipt_of<'py>(array: &Bound<'py, PyAny>, address: usize) -> PyResult<Option<ReceiptFields<'py>>> {
    let (py, numpy) = (array.py(), NumPy::get(array.py())?);
    let (allocator, owner) = (get_allocator(py, Some(array))?, numpy.owner(array));
    let block = owner.and_then(|owner| numpy.block(&owner)).map_or(address, |block| block.addr().get());
    if let Some(pages) = allocator.as_ref().and_then(PyAllocator::native).and_then(find::<Pages>)
        && let Some((_, got)) = pages.receipt(address)
    {
        return of_pages(py, pages.placement(), &got).map(Some);
    }
    let Some(found) = why(block) else { return Ok(None) };
    let (huge, origin) = (found.is_huge.then(|| "thp".to_owned()), found.origin.to_string());
    Ok(Some((found.asked, found.span.1, String::new(), huge, None, false, 0, false, PyTuple::empty(py), origin)))
}

/// Touches the pages of a range, as by a write or by a read.
#[pyfunction]
pub fn touch_range(py: Python<'_>, address: usize, nbytes: usize, write: bool, threads: Option<usize>) -> PyResult<()> {
    let (address, size) = migration::whole_pages(address, nbytes);
    if size == 0 {
        return Ok(());
    }
    if let Some((_, why)) = lacking((address, size), None).filter(|_| write) {
        return Err(PyMemoryError::new_err(format!("cannot touch {}: {why}", Bytes(nbytes))));
    }
    #[allow(unsafe_code)]
    // SAFETY: the caller's array keeps its memory, and can be written where `write` says so.
    let done = py.detach(|| unsafe { prefault((address, size), os::page_size(), write, threads.unwrap_or(0)) });
    done.map(drop).map_err(|error| match Reason::of(error) {
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

/// Bytes that were moved, were in place, are not resident, could not be moved, and why.
type MovedBytes = (usize, usize, usize, usize, Option<String>);

/// Moves pages according to a policy.
#[pyfunction]
pub fn migrate_range(py: Python<'_>, address: usize, nbytes: usize, numa: &Bound<'_, PyAny>) -> PyResult<MovedBytes> {
    let numa = factories::policy("numa", numa)?;
    if nbytes == 0 {
        return Ok((0, 0, 0, 0, None));
    }
    let refused = |reason: Reason| PyOSError::new_err(format!("cannot move the pages to {numa}: {reason}"));
    let binding = Policy::parse(&numa).map_err(PyValueError::new_err)?.binding().map_err(refused)?;
    let done = py.detach(|| migrate((address, nbytes), &binding));
    let sum = done.map_err(|error| refused(Reason::of(error)))?;
    Ok((sum.moved, sum.stayed, sum.absent, sum.failed, sum.why_not.map(|reason| reason.to_string())))
}

type NodeRow = (usize, Vec<usize>, Option<(usize, usize, usize)>, Vec<usize>);

/// Nodes that are online: number, processors, memory (total, free, available), distances.
#[pyfunction]
pub fn numa_nodes() -> Vec<NodeRow> {
    let row = |node: &firsttouch::numa::Node| {
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
/// >>> ft.placement.current_node() in [node.number for node in ft.placement.topology()]
/// True
#[pyfunction]
pub fn current_node() -> usize {
    os::current_node()
}
