//! The NUMA nodes there are, and the current thread on one of them.

use crate::python::errors::{PyRuntimeError, PyValueError};
use crate::python::values::ToPython;
use firsttouch::numa::run_on::{self, Before};
use firsttouch::numa::topology::Topology;
use firsttouch::os;
use pyo3::prelude::*;
use std::thread::{self, ThreadId};

type NodeRow = (usize, Vec<usize>, Option<(usize, usize, usize)>, Vec<usize>);

/// Nodes that are online: number, processors, memory (total, free, available), distances.
#[pyfunction]
fn numa_nodes() -> ToPython<Vec<NodeRow>> {
    let row = |node: &firsttouch::numa::topology::Node| {
        let memory = node.memory.map(|memory| (memory.total, memory.free, memory.available));
        (node.number, node.processors.iter().collect(), memory, node.distances.clone())
    };
    ToPython(Topology::read().nodes.iter().map(row).collect())
}

/// Return the NUMA node of the processor that the current thread runs on.
///
/// Returns
/// -------
/// int
///
/// See Also
/// --------
/// run_on : Run on another node.
/// topology : All nodes.
#[pyfunction]
fn current_node() -> ToPython<usize> {
    ToPython(os::current_node())
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
#[pyfunction]
fn highest_node() -> ToPython<usize> {
    ToPython(Topology::read().highest())
}

/// The previous settings of a thread; restored once.
#[pyclass(module = "firsttouch", frozen)]
pub struct ThreadPlace {
    before: Before,
    thread: ThreadId,
    /// Why the memory policy was left unchanged, if it was.
    #[pyo3(get)]
    why_not: Option<String>,
}

#[pymethods]
impl ThreadPlace {
    /// Restores the thread's processors and memory policy.
    fn restore(&self) -> PyResult<()> {
        if thread::current().id() != self.thread {
            return Err(PyRuntimeError::new_err(
                "run_on() ends in another thread than it began in: processors and memory policies belong to threads",
            ));
        }
        run_on::leave(&self.before);
        Ok(())
    }
}

/// Sends the current thread to a node.
#[pyfunction]
fn run_on_node(node: usize) -> PyResult<ThreadPlace> {
    let (before, why_not) = run_on::enter(node).map_err(PyValueError::new_err)?;
    Ok(ThreadPlace { before, thread: thread::current().id(), why_not: why_not.map(|reason| reason.to_string()) })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(numa_nodes, module)?)?;
    module.add_function(wrap_pyfunction!(current_node, module)?)?;
    module.add_function(wrap_pyfunction!(highest_node, module)?)?;
    module.add_class::<ThreadPlace>()?;
    module.add_function(wrap_pyfunction!(run_on_node, module)?)
}
