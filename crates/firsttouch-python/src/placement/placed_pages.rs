//! Pages with a placement: policies, slabs, and the receipts of what was granted.

use crate::allocators::allocator::PyAllocator;
use crate::python::errors::PyValueError;
use crate::python::values::{Dict, ToPython};
use firsttouch::allocator::find;
use firsttouch::numa::policy::Policy;
use firsttouch::numa::policy::{self, Axis};
use firsttouch::numa::topology::Topology;
use firsttouch::os;
use firsttouch::pages::placement::{Page, Placement};
use firsttouch::pages::receipt::{self, Receipt};
use firsttouch::sources::PlacedPages;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Whether the machine has the nodes that a policy names, and its text in its usual form.
#[pyfunction]
fn policy_name(text: &str) -> PyResult<ToPython<String>> {
    Ok(ToPython(policy(text)?.to_string()))
}

pub(super) fn policy(text: &str) -> PyResult<Policy> {
    let policy = Policy::parse(text).map_err(PyValueError::new_err)?;
    policy.check(&Topology::read()).map_err(PyValueError::new_err)?;
    Ok(policy)
}

/// The axis that slabs of arrays from `allocator` follow, if slabs were requested.
#[pyfunction]
fn slab_axis(allocator: &PyAllocator) -> Option<isize> {
    if !allocator.has_slabs() {
        return None;
    }
    match allocator.native().and_then(find::<PlacedPages>)?.placement().policy? {
        Policy::Blocked(axis) => Some(axis),
        _ => None,
    }
}

/// Announces that this thread's blocks of `nbytes` bytes are for arrays whose slabs follow an axis of `items` items,
/// `stride` bytes apart; without arguments, that the axis is unknown.
#[pyfunction]
#[pyo3(signature = (expected=None))]
fn expect_axis(expected: Option<(usize, usize, usize)>) {
    policy::expect_axis(expected.map(|(nbytes, stride, items)| (nbytes, Axis { stride, items })));
}

fn page_name(page: Page) -> Option<String> {
    (page != Page::Base).then(|| page.to_string().trim_matches('\'').to_owned())
}

pub fn receipt_dict<'py>(py: Python<'py>, asked: &Placement, got: &Receipt) -> PyResult<Bound<'py, PyDict>> {
    let dict = Dict::new(py)?;
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
    Ok(dict.done())
}

/// The receipt of the block that contains `address`; `None` if there are no placed pages at the bottom of `allocator`.
#[pyfunction]
fn receipt_of<'py>(py: Python<'py>, allocator: &PyAllocator, address: usize) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(pages) = allocator.native().and_then(find::<PlacedPages>) else { return Ok(None) };
    pages.receipt(address).map(|(_, receipt)| receipt_dict(py, pages.placement(), &receipt)).transpose()
}

/// The request, why it was not granted, blocks, bytes.
type ReceiptSum = (&'static str, Option<String>, u64, u64);

/// The sums over the process: request, why it was not granted, blocks, bytes.
#[pyfunction]
fn receipt_sums() -> ToPython<Vec<ReceiptSum>> {
    ToPython(receipt::sums().into_iter().map(|sum| (sum.step, sum.why_not, sum.blocks, sum.bytes)).collect())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(policy_name, module)?)?;
    module.add_function(wrap_pyfunction!(slab_axis, module)?)?;
    module.add_function(wrap_pyfunction!(expect_axis, module)?)?;
    module.add_function(wrap_pyfunction!(receipt_of, module)?)?;
    module.add_function(wrap_pyfunction!(receipt_sums, module)?)
}
