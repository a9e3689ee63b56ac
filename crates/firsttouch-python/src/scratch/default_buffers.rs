//! The default buffer of a thread or an asyncio task: made on first use, and dropped with it.

#![allow(unsafe_code)] // Safety: one call of CPython's, of which each thread has its own answer.

use crate::python::values::PyRuntimeError;
use crate::scratch::buffer::{self, PyBuffer};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};

/// The loaded modules.
static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
/// The homes of tasks, in a weak dictionary.
static TASKS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Makes what the first call would make, during which another thread may fork.
pub fn look_up(py: Python<'_>) -> PyResult<()> {
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    let tasks = py.import("weakref")?.getattr("WeakKeyDictionary")?.call0()?;
    let _ = (MODULES.set(py, modules.unbind()), TASKS.set(py, tasks.unbind()));
    home(py).map(drop)
}

/// The task that runs in this thread.
fn task(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = MODULES.get(py).map(|modules| modules.bind(py).get_item(intern!(py, "asyncio")));
    let Some(asyncio) = modules.transpose()?.flatten() else { return Ok(None) };
    // While asyncio is being imported, no loop runs.
    let Some(running) = asyncio.getattr_opt("_get_running_loop")? else { return Ok(None) };
    let running = running.call0()?;
    if running.is_none() {
        return Ok(None);
    }
    let task = asyncio.getattr("current_task")?.call1((running,))?;
    Ok((!task.is_none()).then_some(task))
}

/// The buffers of who runs now: the default one, once it was used, and those that `using_buffer` put in its place, the
/// innermost first.
#[pyfunction]
pub fn home(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    if let (Some(task), Some(tasks)) = (task(py)?, TASKS.get(py)) {
        let home = tasks.bind(py).call_method1("setdefault", (task, PyList::empty(py)))?;
        return Ok(home.cast_into()?);
    }
    // SAFETY: a borrowed reference to the dictionary of this thread, or null.
    let dict = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyThreadState_GetDict()) };
    let dict = dict.ok_or_else(|| PyRuntimeError::new_err("this thread is not one of Python's any more"))?;
    let (dict, key) = (dict.cast_into::<PyDict>()?, intern!(py, "firsttouch.scratch"));
    if let Some(home) = dict.get_item(key)? {
        return Ok(home.cast_into()?);
    }
    let home = PyList::empty(py);
    dict.set_item(key, &home)?;
    Ok(home)
}

/// Return the scratch buffer of this thread or, in a running asyncio task, of this task.
///
/// Returns
/// -------
/// firsttouch.buffers.Buffer
///     The same object each time. It is made on first use and goes with its thread or task.
///
/// See Also
/// --------
/// using_buffer : Replace it for a block of code.
/// scratch : Uses it by default.
///
/// Examples
/// --------
/// >>> ft.buffers.default_buffer() is ft.buffers.default_buffer()
/// True
#[pyfunction]
pub fn default_buffer(py: Python<'_>) -> PyResult<Bound<'_, PyBuffer>> {
    let home = home(py)?;
    if home.is_empty() {
        home.append(buffer::default_growing(py)?)?;
    }
    Ok(home.get_item(0)?.cast_into()?)
}
