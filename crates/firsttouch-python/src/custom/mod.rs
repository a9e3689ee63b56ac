//! Allocators written in Python.

pub mod allocator;
pub mod calls;
pub mod returned_blocks;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    allocator::register(module)?;
    calls::register(module)?;
    returned_blocks::register(module)
}
