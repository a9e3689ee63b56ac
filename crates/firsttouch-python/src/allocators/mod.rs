//! Allocators as Python objects: the class, the factories and expressions that make them, and introspection.

pub mod allocator;
pub mod arguments;
pub mod expressions;
pub mod factories;
pub mod levels;
pub mod process_pool;
pub mod queries;
pub mod sizes;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<allocator::PyAllocator>()?;
    process_pool::register(module)?;
    factories::register(module)?;
    sizes::register(module)?;
    levels::register(module)?;
    expressions::register(module)
}
