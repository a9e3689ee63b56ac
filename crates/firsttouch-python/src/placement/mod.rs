//! Placement: pages that are placed, their receipts, touching and moving what exists, and the NUMA nodes there are.

pub mod nodes;
pub mod placed_pages;
pub mod ranges;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    placed_pages::register(module)?;
    ranges::register(module)?;
    nodes::register(module)
}
