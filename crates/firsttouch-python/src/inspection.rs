//! The pages behind an array, for Python to render.

use crate::numpy::NumPy;
use crate::python::values::{PyTypeError, out_of_memory};
use firsttouch::os::{self, page_size};
use firsttouch::residency::{PageState, extent, query, summarize, visit_nodes};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::collections::BTreeMap;
use std::ops::Range;

/// The address of an array's first element, and the pages that its elements lie on.
fn pages_of(array: &Bound<'_, PyAny>, function: &str) -> PyResult<(usize, Range<usize>)> {
    let Some(fields) = NumPy::get(array.py())?.array(array) else {
        return Err(PyTypeError::new_err(format!(
            "{function}() takes a NumPy array, not {}: numpy.asarray(...) may give one on the same memory",
            array.get_type().fully_qualified_name()?
        )));
    };
    let address = fields.data as usize;
    let (shape, strides): (Vec<usize>, Vec<isize>) =
        (array.getattr("shape")?.extract()?, array.getattr("strides")?.extract()?);
    let item = array.getattr("itemsize")?.extract()?;
    Ok((address, extent(address, item, &shape, &strides)))
}

/// Name, bytes if known, and source.
type Figure = (&'static str, Option<usize>, &'static str);
/// Address, whole pages, whether the memory is shared, the figures, bytes by node, and the source of these.
type Inspected = (usize, usize, bool, Vec<Figure>, Option<BTreeMap<i32, usize>>, &'static str);

/// What is known of an array's pages.
#[pyfunction]
pub fn inspect(py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<Inspected> {
    let (address, pages) = pages_of(array, "inspect")?;
    let found = py.detach(|| {
        let found = query(&pages);
        found.runs.is_complete().then(|| summarize(&found))
    });
    let found = found.ok_or_else(|| out_of_memory(py))?;
    let figures = found.figures.iter().map(|(name, figure)| (*name, figure.bytes, figure.source)).collect();
    let shared = !pages.is_empty() && os::is_shared(address);
    Ok((address, pages.len() / page_size(), shared, figures, found.nodes, found.nodes_source))
}

/// The state of each page and its node, -1 where none is known; `None` without memory for them.
fn each(pages: &Range<usize>) -> Option<(Vec<u8>, Vec<i16>)> {
    let found = query(pages).runs;
    let at = |part: &Range<usize>| (part.start - pages.start) / page_size()..(part.end - pages.start) / page_size();
    let count = pages.len() / page_size();
    let (mut states, mut nodes) = (Vec::new(), Vec::new());
    states.try_reserve_exact(count).and_then(|()| nodes.try_reserve_exact(count)).ok()?;
    states.resize(count, PageState::Unknown as u8);
    nodes.resize(count, -1);
    found.iter().for_each(|run| states[at(&run.range)].fill(run.state as u8));
    // If the kernel does not tell, no node is known.
    let _ = visit_nodes(&found, |part, node| nodes[at(&part)].fill(node.max(-1) as i16));
    found.is_complete().then_some((states, nodes))
}

/// The first page's address, and of each of an array's pages the state, a byte, and the node, two bytes.
type PagesOfArray<'py> = (usize, Bound<'py, PyByteArray>, Bound<'py, PyByteArray>);

/// States and nodes of an array's pages.
#[pyfunction]
pub fn pagemap<'py>(py: Python<'py>, array: &Bound<'py, PyAny>) -> PyResult<PagesOfArray<'py>> {
    let (_, pages) = pages_of(array, "pagemap")?;
    let (states, nodes) = py.detach(|| each(&pages)).ok_or_else(|| out_of_memory(py))?;
    #[allow(unsafe_code)]
    // SAFETY: any numbers are valid bytes.
    let nodes = unsafe { nodes.align_to().1 };
    Ok((pages.start, PyByteArray::new(py, &states), PyByteArray::new(py, nodes)))
}
