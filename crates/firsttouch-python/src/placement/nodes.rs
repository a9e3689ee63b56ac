//! What there is of nodes.

use crate::memory_out::Given;
use firsttouch::numa::topology::Topology;
use firsttouch::os;
use pyo3::prelude::*;

type NodeRow = (usize, Vec<usize>, Option<(usize, usize, usize)>, Vec<usize>);

/// Nodes that are online: number, processors, memory (total, free, available), distances.
#[pyfunction]
fn numa_nodes() -> Given<Vec<NodeRow>> {
    let row = |node: &firsttouch::numa::topology::Node| {
        let memory = node.memory.map(|memory| (memory.total, memory.free, memory.available));
        (node.number, node.processors.iter().collect(), memory, node.distances.clone())
    };
    Given(Topology::read().nodes.iter().map(row).collect())
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
fn current_node() -> Given<usize> {
    Given(os::current_node())
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
fn highest_node() -> Given<usize> {
    Given(Topology::read().highest())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(numa_nodes, module)?)?;
    module.add_function(wrap_pyfunction!(current_node, module)?)?;
    module.add_function(wrap_pyfunction!(highest_node, module)?)
}
