//! Native functions of the command line's tools: recording and summarizing traces, profiling regions.

pub mod profile;
pub mod trace;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    trace::register(module)?;
    profile::register(module)
}
