//! Scratch memory as Python knows it: buffers, scopes, and the context manager and decorator that open them.

mod buffer;
mod buffers;
mod entering;
mod home;
mod known;
mod lent;
mod manager;
mod outcome;
mod own;
mod raw;
mod result;
mod scope;
mod shelf;
mod storage;
mod who;

use pyo3::prelude::*;

pub use buffer::PyBuffer;
pub use entering::nearest_open;

/// Finds now what the first calls would look for.
pub fn look_up(py: Python<'_>) -> PyResult<()> {
    home::look_up(py)?;
    result::look_up(py)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<buffer::PyBuffer>()?;
    module.add_class::<buffers::ScratchBuffer>()?;
    module.add_class::<buffers::FixedBuffer>()?;
    module.add_class::<buffer::Mark>()?;
    module.add_class::<scope::PyScope>()?;
    module.add_class::<manager::Scratch>()?;
    own::register(module)?;
    home::register(module)
}
