//! Native functions of the command line's tools: the bounds of memory, recording and summarizing traces,
//! profiling regions.

pub mod machine;
pub mod profile;
pub mod trace;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    machine::register(module)?;
    trace::register(module)?;
    profile::register(module)
}
