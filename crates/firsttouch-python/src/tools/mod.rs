//! Native functions of the command line's tools: recording and replaying traces, profiling regions, a benchmark's
//! loop.

pub mod profile;
pub mod recorder_handler;
pub mod replay_target;
pub mod scratch_loop;
pub mod trace;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    trace::register(module)?;
    profile::register(module)?;
    scratch_loop::register(module)
}
