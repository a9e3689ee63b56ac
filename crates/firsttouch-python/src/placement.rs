//! Placement: pages that are placed, touching, and what there is of nodes.

use crate::allocator::PyAllocator;
use crate::stacks::find;
use firsttouch::memory::migration::{self, Axis};
use firsttouch::memory::placement::{Page, Placement, Populate};
use firsttouch::memory::policy::{Outer, Policy};
use firsttouch::memory::receipt::{self, Reason, Receipt};
use firsttouch::memory::topology::Topology;
use firsttouch::memory::touch::{self, Job, Pattern, Way};
use firsttouch::os;
use firsttouch::sources::PlacedPages;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The text of a page size in its usual form; one of the machine's.
#[pyfunction]
fn page_size_name(text: &str) -> PyResult<String> {
    let page = Page::parse(text).map_err(PyValueError::new_err)?;
    Ok(page.to_string().trim_matches('\'').to_owned())
}

/// Whether the machine has the nodes that a policy names, and its text in its usual form.
#[pyfunction]
fn policy_name(text: &str) -> PyResult<String> {
    Ok(policy(text)?.to_string())
}

fn policy(text: &str) -> PyResult<Policy> {
    let policy = Policy::parse(text).map_err(PyValueError::new_err)?;
    policy.check(&Topology::read()).map_err(PyValueError::new_err)?;
    Ok(policy)
}

/// Pages with a placement. `populate` is a number of threads, 0 for none, -1 for what suits; `huge` names page sizes,
/// "" for base pages without regret.
#[pyfunction]
fn placed_pages(
    huge: Vec<String>,
    populate: i64,
    lock: bool,
    numa: Option<&str>,
    strict: bool,
) -> PyResult<PyAllocator> {
    let page = |text: &String| if text.is_empty() { Ok(Page::Base) } else { Page::parse(text) };
    let pages = huge.iter().map(page).collect::<Result<_, _>>().map_err(PyValueError::new_err)?;
    let populate = match usize::try_from(populate) {
        Ok(0) => Populate::No,
        Ok(threads) => Populate::Threads(threads),
        Err(_) => Populate::Best,
    };
    let policy = numa.map(policy).transpose()?;
    Ok(PyAllocator::ours(PlacedPages::new(Placement { pages, populate, lock, policy, strict })))
}

fn page_name(page: Page) -> Option<String> {
    (page != Page::Base).then(|| page.to_string().trim_matches('\'').to_owned())
}

/// A receipt in plain types.
pub fn receipt_dict<'py>(py: Python<'py>, asked: &Placement, got: &Receipt) -> PyResult<Bound<'py, PyDict>> {
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

/// The receipt of the block that `address` lies in; nothing where no placed pages are at the bottom of `allocator`.
#[pyfunction]
fn receipt_of<'py>(py: Python<'py>, allocator: &PyAllocator, address: usize) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(pages) = allocator.native().and_then(find::<PlacedPages>) else { return Ok(None) };
    pages.receipt(address).map(|(_, receipt)| receipt_dict(py, pages.placement(), &receipt)).transpose()
}

/// The process's sums: wish, why it was not granted, blocks, bytes.
#[pyfunction]
fn receipt_sums() -> Vec<(&'static str, Option<String>, u64, u64)> {
    receipt::sums().into_iter().map(|sum| (sum.step, sum.why_not, sum.blocks, sum.bytes)).collect()
}

/// Makes the pages of a range real, as by a write or by a read; threads that worked, and whether the kernel did it.
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
) -> PyResult<(usize, bool)> {
    let (address, size) = migration::whole_pages(address, nbytes);
    if size == 0 {
        return Ok((0, true));
    }
    let (missing, available) = (migration::missing(address, size), os::headroom());
    if missing > available {
        return Err(PyMemoryError::new_err(format!(
            "{missing} bytes are to be real at once, and {available} are available in this machine or its memory cgroup"
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
    done.map(|done| (done.threads, done.by_kernel)).map_err(|error| match Reason::of(error) {
        Reason::Errno(code) if code == os::Errno::BAD_ADDRESS.0 || code == os::Errno::NO_MEMORY.0 => {
            PyMemoryError::new_err(format!(
                "{nbytes} bytes could not be made real: there is no memory for them (errno {code})"
            ))
        }
        reason => PyOSError::new_err(format!("{nbytes} bytes could not be made real: {reason}")),
    })
}

/// Runs work without the GIL; signals are answered, and an exception that they raise ends it.
fn interruptible<T: Send>(
    progress: Option<Py<PyAny>>,
    work: &mut (dyn FnMut(touch::GoOn<'_>) -> T + Send),
) -> PyResult<T> {
    Python::attach(|py| {
        let mut raised = None;
        let result = py.detach(|| {
            work(&mut |done| {
                let asked = Python::attach(|py| {
                    py.check_signals()?;
                    progress.as_ref().map_or(Ok(()), |call| call.call1(py, (done,)).map(drop))
                });
                asked.map_err(|error| raised = Some(error)).is_ok()
            })
        });
        raised.map_or(Ok(result), Err)
    })
}

/// Bytes of a range that are on huge pages after this, and why the others are not.
#[pyfunction]
fn collapse_range(address: usize, nbytes: usize) -> PyResult<(usize, Option<String>)> {
    let (huge, why_not) = interruptible(None, &mut |go_on| migration::collapse((address, nbytes), go_on))?;
    Ok((huge, why_not.map(|reason| reason.to_string())))
}

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
) -> PyResult<(usize, usize, usize, usize, Option<String>)> {
    let refused = |reason: Reason| PyOSError::new_err(format!("the pages could not be moved to {numa}: {reason}"));
    let orders = policy(numa)?.within(&Outer::now(Topology::read().with_memory())).map_err(refused)?;
    let axis = axis.map(|(stride, items)| Axis { stride, items });
    // Pages that are not there yet follow, where the block is a mapping of its own.
    if let Some(pages) = allocator.and_then(PyAllocator::native).and_then(find::<PlacedPages>)
        && pages.receipt(address).is_some_and(|(start, receipt)| (start, receipt.asked) == (address, nbytes))
        && (!orders.slabs || axis.is_none_or(|axis| axis.stride * axis.items == nbytes))
    {
        let _ = pages.rebind(address, &orders); // the pages that are there tell whether it worked
    }
    let done = interruptible(None, &mut |go_on| migration::migrate((address, nbytes), &orders, axis, go_on))?;
    let sum = done.map_err(|error| refused(Reason::of(error)))?;
    Ok((sum.moved, sum.stayed, sum.absent, sum.failed, sum.why_not.map(|reason| reason.to_string())))
}

/// The node of each page of a range; negative where none of its own is there.
#[pyfunction]
fn nodes_of_range(py: Python<'_>, address: usize, nbytes: usize) -> PyResult<Vec<i32>> {
    let (start, size) = migration::whole_pages(address, nbytes);
    py.detach(|| migration::nodes_of(start, size))
        .map_err(|error| PyOSError::new_err(format!("move_pages: {}", Reason::of(error))))
}

type NodeRow = (usize, Vec<usize>, Option<(usize, usize, usize)>, Vec<usize>);

/// Nodes that are online: number, processors, memory (total, free, available), distances.
#[pyfunction]
fn numa_nodes() -> Vec<NodeRow> {
    let row = |node: &firsttouch::memory::topology::Node| {
        let memory = node.memory.map(|memory| (memory.total, memory.free, memory.available));
        (node.number, node.processors.iter().collect(), memory, node.distances.clone())
    };
    Topology::read().nodes.iter().map(row).collect()
}

/// The node of the processor that runs this thread now.
#[pyfunction]
fn current_node() -> usize {
    os::current_node()
}

/// The highest number of a node that is online.
#[pyfunction]
fn highest_node() -> usize {
    Topology::read().highest()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::placement_waiting::set_up();
    crate::placement_run_on::register(module)?;
    module.add_function(wrap_pyfunction!(page_size_name, module)?)?;
    module.add_function(wrap_pyfunction!(policy_name, module)?)?;
    module.add_function(wrap_pyfunction!(placed_pages, module)?)?;
    module.add_function(wrap_pyfunction!(receipt_of, module)?)?;
    module.add_function(wrap_pyfunction!(receipt_sums, module)?)?;
    module.add_function(wrap_pyfunction!(touch_range, module)?)?;
    module.add_function(wrap_pyfunction!(collapse_range, module)?)?;
    module.add_function(wrap_pyfunction!(migrate_range, module)?)?;
    module.add_function(wrap_pyfunction!(nodes_of_range, module)?)?;
    module.add_function(wrap_pyfunction!(numa_nodes, module)?)?;
    module.add_function(wrap_pyfunction!(current_node, module)?)?;
    module.add_function(wrap_pyfunction!(highest_node, module)?)
}
