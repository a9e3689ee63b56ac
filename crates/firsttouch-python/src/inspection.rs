//! The pages behind an array, for Python to render.

use crate::python::values::out_of_memory;
use firsttouch::os::{self, page_size};
use firsttouch::pages::migration::whole_pages;
use firsttouch::residency::{PageState, query, summarize, visit_nodes};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::collections::BTreeMap;
use std::ops::Range;

/// The whole pages of a range of bytes.
fn pages_of(address: usize, nbytes: usize) -> Range<usize> {
    let (start, size) = whole_pages(address, nbytes);
    start..start + size
}

/// Whole pages, whether the memory is shared, figures by their names, and bytes by node.
type Inspected = (usize, bool, BTreeMap<&'static str, Option<usize>>, Option<BTreeMap<i32, usize>>);

/// What is known of the pages of a range.
#[pyfunction]
pub fn inspect(py: Python<'_>, address: usize, nbytes: usize) -> PyResult<Inspected> {
    let pages = pages_of(address, nbytes);
    let found = py.detach(|| {
        let found = query(&pages);
        found.is_complete().then(|| summarize(&found))
    });
    let found = found.ok_or_else(|| out_of_memory(py))?;
    let shared = !pages.is_empty() && os::is_shared(address);
    Ok((pages.len() / page_size(), shared, found.figures.into(), found.nodes))
}

/// The state of each page and its node, -1 where none is known; `None` without memory for them.
fn each(pages: &Range<usize>) -> Option<(Vec<u8>, Vec<i16>)> {
    let found = query(pages);
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

/// States and nodes of the pages of a range.
#[pyfunction]
pub fn pagemap(py: Python<'_>, address: usize, nbytes: usize) -> PyResult<PagesOfArray<'_>> {
    let pages = pages_of(address, nbytes);
    let (states, nodes) = py.detach(|| each(&pages)).ok_or_else(|| out_of_memory(py))?;
    #[allow(unsafe_code)]
    // SAFETY: any numbers are valid bytes.
    let nodes = unsafe { nodes.align_to().1 };
    Ok((pages.start, PyByteArray::new(py, &states), PyByteArray::new(py, nodes)))
}
