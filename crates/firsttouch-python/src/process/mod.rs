//! The process: which allocator serves it, its statistics, forks and memory faults.

pub mod faults;
pub mod forks;
pub mod injection;
pub mod install;
pub mod statistics;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    injection::register(module)?;
    install::register(module)?;
    statistics::register(module)?;
    forks::register(module)?;
    faults::register(module)
}
