//! The current thread on one node, for a block of code.

use crate::memory_out::{PyRuntimeError, PyValueError};
use firsttouch::numa::run_on::{self, Before};
use pyo3::prelude::*;
use std::thread::{self, ThreadId};

/// What was in force in a thread before; ends once.
#[pyclass(module = "firsttouch", frozen)]
pub struct ThreadPlace {
    before: Before,
    thread: ThreadId,
    /// Why the memory policy stayed as it was, where it did.
    #[pyo3(get)]
    why_not: Option<String>,
}

#[pymethods]
impl ThreadPlace {
    /// Restores the thread's processors and memory policy.
    fn restore(&self) -> PyResult<()> {
        if thread::current().id() != self.thread {
            return Err(PyRuntimeError::new_err(
                "run_on() ends in another thread than it began in: processors and memory policies belong to threads",
            ));
        }
        run_on::leave(&self.before);
        Ok(())
    }
}

/// Sends the current thread to a node.
#[pyfunction]
fn run_on_node(node: usize) -> PyResult<ThreadPlace> {
    let (before, why_not) = run_on::enter(node).map_err(PyValueError::new_err)?;
    Ok(ThreadPlace { before, thread: thread::current().id(), why_not: why_not.map(|reason| reason.to_string()) })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ThreadPlace>()?;
    module.add_function(wrap_pyfunction!(run_on_node, module)?)
}
