//! Pages with a placement, and the words for it.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::downcast::find;
use crate::python::errors::PyValueError;
use crate::python::global_allocator::ensure_memory;
use crate::python::values::ToPython;
use firsttouch::numa::axis::{self, Axis};
use firsttouch::numa::policy::Policy;
use firsttouch::numa::topology::Topology;
use firsttouch::pages::placement::{Page, Placement, Populate};
use firsttouch::sources::PlacedPages;
use pyo3::prelude::*;

/// The text of a page size in its usual form; one of the machine's.
#[pyfunction]
fn page_size_name(text: &str) -> PyResult<ToPython<String>> {
    let page = Page::parse(text).map_err(PyValueError::new_err)?;
    Ok(ToPython(page.to_string().trim_matches('\'').to_owned()))
}

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

/// Pages with a placement. `populate` is a number of threads, 0 for none, -1 for what suits; `huge` names page sizes,
/// "" for base pages without regret.
#[pyfunction]
fn placed_pages(
    huge: &Bound<'_, PyAny>,
    populate: i64,
    lock: bool,
    numa: Option<&str>,
    strict: bool,
    progress: bool,
) -> PyResult<PyAllocator> {
    ensure_memory(huge.py())?;
    let huge: Vec<String> = huge.extract()?; // here, as PyO3 panics where it has no memory for an argument's error
    let page = |text: &String| if text.is_empty() { Ok(Page::Base) } else { Page::parse(text) };
    let pages = huge.iter().map(page).collect::<Result<_, _>>().map_err(PyValueError::new_err)?;
    let populate = match usize::try_from(populate) {
        Ok(0) => Populate::No,
        Ok(threads) => Populate::Threads(threads),
        Err(_) => Populate::Best,
    };
    let policy = numa.map(policy).transpose()?;
    Ok(PyAllocator::ours(PlacedPages::new(Placement { pages, populate, lock, policy, strict, progress })))
}

/// The policy of the placed pages at the bottom of `allocator`.
#[pyfunction]
fn policy_of(allocator: &PyAllocator) -> ToPython<Option<String>> {
    let pages = allocator.native().and_then(find::<PlacedPages>);
    ToPython(pages.and_then(|pages| Some(pages.placement().policy?.to_string())))
}

/// The axis that slabs of arrays from `allocator` follow, where they are asked for.
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

/// Says that blocks of `nbytes` bytes, for this thread, are for arrays whose slabs follow an axis of `items` items
/// `stride` bytes apart; with nothing, that nobody knows.
#[pyfunction]
#[pyo3(signature = (expected=None))]
fn expect_axis(expected: Option<(usize, usize, usize)>) {
    axis::expect(expected.map(|(nbytes, stride, items)| (nbytes, Axis { stride, items })));
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(page_size_name, module)?)?;
    module.add_function(wrap_pyfunction!(policy_name, module)?)?;
    module.add_function(wrap_pyfunction!(policy_of, module)?)?;
    module.add_function(wrap_pyfunction!(placed_pages, module)?)?;
    module.add_function(wrap_pyfunction!(slab_axis, module)?)?;
    module.add_function(wrap_pyfunction!(expect_axis, module)?)
}
