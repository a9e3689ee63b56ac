//! Allocators as Python objects: the class, the functions and expressions that make them, and introspection.

pub mod allocator;
pub mod factories;
pub mod process_pool;
pub mod queries;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    allocator::register(module)?;
    process_pool::register(module)?;
    factories::register(module)
}
