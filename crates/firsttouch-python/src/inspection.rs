//! The pages behind an array, for Python to render.

use crate::numpy::NumPy;
use crate::python::values::{self, Dict, Name, PyTypeError, ToPython, out_of_memory};
use firsttouch::os::{self, page_size};
use firsttouch::residency::{Residency, footprint, query, summarize, visit_nodes};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict};
use std::collections::TryReserveError;
use std::ops::Range;

/// The address of an array's first element, and the pages that contain its elements.
fn pages_of(array: &Bound<'_, PyAny>, function: &str) -> PyResult<(usize, Vec<Range<usize>>)> {
    let Some(fields) = NumPy::get(array.py())?.array(array) else {
        return Err(PyTypeError::new_err(format!(
            "{function}() takes a NumPy array, not {}: numpy.asarray(...) may give one on the same memory",
            array.get_type().fully_qualified_name()?
        )));
    };
    let address = fields.data as usize;
    let (shape, strides): (Vec<usize>, Vec<isize>) =
        (array.getattr(Name("shape"))?.extract()?, array.getattr(Name("strides"))?.extract()?);
    let item = array.getattr(Name("itemsize"))?.extract()?;
    let py = array.py();
    let pages = py.detach(|| footprint(address, item, &shape, &strides));
    Ok((address, pages.map_err(|_| out_of_memory(py))?))
}

/// `None` if there was no memory for all of it.
fn complete(found: Residency) -> Option<Residency> {
    found.runs.is_complete().then_some(found)
}

/// Figures about an array's pages: name to bytes (or `None`) and source, and what is known of the address.
#[pyfunction]
fn inspect<'py>(py: Python<'py>, array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let (address, ranges) = pages_of(array, "inspect")?;
    let found = py.detach(|| complete(query(&ranges)).map(|found| summarize(&found)));
    let found = found.ok_or_else(|| out_of_memory(py))?;
    let dict = Dict::new(py)?;
    dict.set_item("address", address)?;
    dict.set_item("page_size", page_size())?;
    dict.set_item("shared", !ranges.is_empty() && os::is_shared(address))?;
    dict.set_item("pages", ranges.iter().map(|range| range.len() / page_size()).sum::<usize>())?;
    let figures = Dict::new(py)?;
    for (name, figure) in found.figures {
        figures.set_item(name, (figure.bytes, figure.source))?;
    }
    dict.set_item("figures", figures.done())?;
    dict.set_item("nodes", (found.nodes, found.nodes_source))?;
    Ok(dict.done())
}

/// Everything about each page.
struct PerPage {
    states: Vec<u8>,
    sources: Vec<u8>,
    /// Two bytes each; -1 if the page is not resident or its node is not known.
    nodes: Vec<u8>,
}

fn per_page(found: &Residency, with_nodes: bool) -> Result<PerPage, TryReserveError> {
    let count = |range: &Range<usize>| range.len() / page_size();
    let mut per_page = PerPage { states: Vec::new(), sources: Vec::new(), nodes: Vec::new() };
    let total: usize = found.runs.iter().map(|run| count(&run.range)).sum();
    per_page.states.try_reserve_exact(total)?;
    per_page.sources.try_reserve_exact(total)?;
    for run in found.runs.iter() {
        per_page.states.resize(per_page.states.len() + count(&run.range), run.state as u8);
        per_page.sources.resize(per_page.sources.len() + count(&run.range), run.source as u8);
    }
    if !with_nodes {
        return Ok(per_page);
    }
    per_page.nodes.try_reserve_exact(2 * total)?;
    per_page.nodes.resize(2 * per_page.states.len(), u8::MAX);
    let mut runs = found.runs.iter();
    let (mut run, mut before) = (runs.next(), 0);
    // If the kernel does not tell, no node is known.
    let _ = visit_nodes(&found.runs, |pages, node| {
        while let Some(at) = run.filter(|at| at.range.end <= pages.start) {
            before += count(&at.range);
            run = runs.next();
        }
        let Some((at, node)) = run.zip(i16::try_from(node).ok().filter(|&node| node >= 0)) else { return };
        let first = before + (pages.start - at.range.start) / page_size();
        for bytes in per_page.nodes[2 * first..2 * (first + count(&pages))].chunks_exact_mut(2) {
            bytes.copy_from_slice(&node.to_ne_bytes());
        }
    });
    Ok(per_page)
}

/// States and sources (a byte for each page), nodes (two bytes), and the address ranges of the pages (two words each).
type Pages<'py> =
    (Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, usize);

/// The `PerPage` of an array's pages, and the page size; the nodes only on request.
#[pyfunction]
fn pagemap<'py>(
    py: Python<'py>,
    array: &Bound<'py, PyAny>,
    nodes: bool,
    function: &str,
) -> PyResult<ToPython<Pages<'py>>> {
    let (_, ranges) = pages_of(array, function)?;
    let found = py.detach(|| per_page(&complete(query(&ranges))?, nodes).ok());
    let found = found.ok_or_else(|| out_of_memory(py))?;
    let words: Vec<u8> =
        ranges.iter().flat_map(|range| [range.start, range.end]).flat_map(usize::to_ne_bytes).collect();
    let bytes = |from: &[u8]| values::bytes(py, from);
    Ok(ToPython((bytes(&found.states)?, bytes(&found.sources)?, bytes(&found.nodes)?, bytes(&words)?, page_size())))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(inspect, module)?)?;
    module.add_function(wrap_pyfunction!(pagemap, module)?)
}
