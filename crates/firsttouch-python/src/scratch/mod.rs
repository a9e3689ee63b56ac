//! Scratch memory as Python knows it.
//!
//! From the bottom: a [`buffer`] may stand on [`storage`] of another object's; [`default_buffers`] belong to a thread or a
//! task; a [`scope`] lets NumPy use a buffer; the [`decorator`] opens scopes, and copies what a decorated function returns.

pub mod buffer;
pub mod decorator;
pub mod default_buffers;
pub mod scope;
pub mod storage;

use pyo3::prelude::*;

/// Looks up what the first calls would need.
pub fn look_up(py: Python<'_>) -> PyResult<()> {
    default_buffers::look_up(py)?;
    decorator::look_up(py)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<buffer::PyBuffer>()?;
    module.add_class::<buffer::ScratchBuffer>()?;
    module.add_class::<buffer::FixedBuffer>()?;
    module.add_class::<scope::PyScope>()?;
    module.add_class::<decorator::Scratch>()?;
    default_buffers::register(module)
}
