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

/// The node of the processor that runs this thread now.
#[pyfunction]
fn current_node() -> Given<usize> {
    Given(os::current_node())
}

/// The highest number of a node that is online.
#[pyfunction]
fn highest_node() -> Given<usize> {
    Given(Topology::read().highest())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(numa_nodes, module)?)?;
    module.add_function(wrap_pyfunction!(current_node, module)?)?;
    module.add_function(wrap_pyfunction!(highest_node, module)?)
}
