//! The pages behind an array, for Python to render.

use crate::numpy::NumPy;
use crate::python::values::{PyTypeError, out_of_memory};
use firsttouch::os::{self, page_size};
use firsttouch::residency::{extent, query, summarize, visit_nodes};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::collections::{BTreeMap, TryReserveError};
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

/// Adjacent pages: the first address, the address after the last, and what they have in common.
type Run = [isize; 3];

/// Appends pages to runs.
fn push(runs: &mut Vec<Run>, pages: Range<usize>, common: isize) -> Result<(), TryReserveError> {
    let (start, end) = (pages.start as isize, pages.end as isize);
    match runs.last_mut() {
        Some(last) if (last[1], last[2]) == (start, common) => last[1] = end,
        _ => {
            runs.try_reserve(1)?;
            runs.push([start, end, common]);
        }
    }
    Ok(())
}

/// Runs of an array's pages in one state and, on request, of those whose node is known on one node; `None` without memory for
/// them.
fn runs_of(pages: &Range<usize>) -> Option<(Vec<Run>, Vec<Run>)> {
    let found = query(pages).runs;
    let (mut states, mut nodes) = (Vec::new(), Vec::new());
    found.iter().try_for_each(|run| push(&mut states, run.range.clone(), run.state as isize)).ok()?;
    let mut pushed = Ok(());
    // If the kernel does not tell, no node is known.
    let _ = visit_nodes(&found, |pages, node| {
        if node >= 0 && pushed.is_ok() {
            pushed = push(&mut nodes, pages, node as isize);
        }
    });
    (found.is_complete() && pushed.is_ok()).then_some((states, nodes))
}

/// The runs as bytes.
type Pages<'py> = (Bound<'py, PyByteArray>, Bound<'py, PyByteArray>);

/// States and nodes of an array's pages.
#[pyfunction]
pub fn pagemap<'py>(py: Python<'py>, array: &Bound<'py, PyAny>) -> PyResult<Pages<'py>> {
    let (_, pages) = pages_of(array, "pagemap")?;
    let found = py.detach(|| runs_of(&pages));
    let (states, nodes) = found.ok_or_else(|| out_of_memory(py))?;
    #[allow(unsafe_code)]
    // SAFETY: any words are valid bytes.
    let bytes = |runs: &[Run]| PyByteArray::new(py, unsafe { runs.as_flattened().align_to().1 });
    Ok((bytes(&states), bytes(&nodes)))
}
