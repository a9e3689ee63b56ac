//! What the end of a scope reports: writes to freed memory, arrays that outlive it, the reason of a `MemoryError`.

use crate::custom::raise_scope_error;
use crate::python::call_sites;
use crate::python::callbacks::callback;
use crate::python::errors::PyRuntimeError;
use crate::python::values::{self, ToPython};
use firsttouch::scratch::{Damage, Survivor};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// An error that custom scratch memory raised, or of a write to freed memory that debug mode found.
pub fn damage(py: Python<'_>, found: Option<Damage>) -> PyResult<()> {
    raise_scope_error()?;
    let Some(damage) = found else { return Ok(()) };
    let line = call_sites::place(py, damage.site);
    let line = line.map_or_else(String::new, |(file, number)| format!(", which {file}:{number} asked for"));
    Err(PyRuntimeError::new_err(format!(
        "scratch memory was written to after it was freed: byte {} of a block of {} bytes at {:#x}{line}",
        damage.offset, damage.size, damage.address
    )))
}

/// Survivors as Python's half takes them: `(address, nbytes, "file:line" or None)`.
pub fn listed<'py>(py: Python<'py>, survivors: &[Survivor]) -> PyResult<Bound<'py, PyList>> {
    let list = values::list(py)?;
    for survivor in survivors {
        let line = call_sites::place(py, survivor.site).map(|(file, number)| format!("{file}:{number}"));
        list.append(ToPython((survivor.address, survivor.size, line)))?;
    }
    Ok(list)
}

/// Adds what NumPy's `MemoryError` does not say itself: it knows nothing of buffers.
pub fn explain(error: &Bound<'_, PyAny>) -> PyResult<()> {
    if !error.is_instance_of::<PyMemoryError>() || error.get_type().qualname()? != "_ArrayMemoryError" {
        return Ok(());
    }
    callback(error.py(), "add_reason")?.call1((error,)).map(drop)
}
