//! Scratch memory as Python knows it: buffers, scopes, and the context manager and decorator that open them.
//!
//! From the bottom: a [`scope`] takes memory from a [`buffer`], of one of the two [kinds](buffers) or around [`custom`]
//! scratch memory; [`default_buffers`] belong to a thread or task; an [`entered_scope`] serves NumPy, until the
//! [`manager`] leaves it and, of a decorated function, copies its [`result`].

pub mod buffer;
pub mod buffers;
pub mod custom;
pub mod default_buffers;
pub mod diagnostics;
pub mod entered_scope;
pub mod manager;
pub mod raw_memory;
pub mod result;
pub mod scope;
pub mod storage;
pub mod thread_or_task;

use pyo3::prelude::*;

/// Looks up what the first calls would need.
pub fn look_up(py: Python<'_>) -> PyResult<()> {
    default_buffers::look_up(py)?;
    manager::look_up(py)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<buffer::PyBuffer>()?;
    module.add_class::<buffers::ScratchBuffer>()?;
    module.add_class::<buffers::FixedBuffer>()?;
    module.add_class::<buffer::Mark>()?;
    module.add_class::<scope::PyScope>()?;
    module.add_class::<manager::Scratch>()?;
    custom::register(module)?;
    default_buffers::register(module)
}
