//! Placement: placed pages and their receipts, touching and migrating existing pages, and the NUMA topology.

pub mod nodes;
pub mod placed_pages;
pub mod ranges;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    placed_pages::register(module)?;
    ranges::register(module)?;
    nodes::register(module)
}
