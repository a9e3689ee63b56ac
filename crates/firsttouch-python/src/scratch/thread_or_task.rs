//! What runs now: a thread or, in it, an asyncio task.

use crate::python::callbacks::callback;
use crate::python::once::{Interned, Once};
use crate::python::values::Name;
use firsttouch::scratch::Owner;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// asyncio's `_get_running_loop` and `current_task`, once the program has loaded it.
static ASYNCIO: PyOnceLock<[Py<PyAny>; 2]> = PyOnceLock::new();
static ASYNCIO_NAME: Interned = Interned::new("asyncio");
static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

fn asyncio(py: Python<'_>) -> PyResult<Option<&[Py<PyAny>; 2]>> {
    if let Some(found) = ASYNCIO.get(py) {
        return Ok(Some(found));
    }
    let modules = MODULES.get_or_make(py, || {
        let modules = py.import(Name("sys"))?.getattr(Name("modules"))?;
        PyResult::Ok(modules.cast_into::<PyDict>()?.unbind())
    })?;
    let Some(loaded) = modules.bind(py).get_item(ASYNCIO_NAME.get(py)?)? else { return Ok(None) };
    // While asyncio is being imported, no loop runs.
    let (Some(running), Some(task)) =
        (loaded.getattr_opt(Name("_get_running_loop"))?, loaded.getattr_opt(Name("current_task"))?)
    else {
        return Ok(None);
    };
    let _ = ASYNCIO.set(py, [running.unbind(), task.unbind()]);
    Ok(ASYNCIO.get(py))
}

/// The task that runs in this thread.
pub fn task(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let Some([running, current]) = asyncio(py)? else { return Ok(None) };
    let running = running.bind(py).call0()?;
    if running.is_none() {
        return Ok(None);
    }
    let task = current.bind(py).call1((running,))?;
    Ok((!task.is_none()).then_some(task))
}

/// A thread, and the task in it.
pub struct ThreadOrTask {
    /// Python's identifier of the thread, by which its name is found.
    thread: u64,
    task: Option<Py<PyAny>>,
    owner: Owner,
}

impl ThreadOrTask {
    /// What runs now.
    pub fn now(py: Python<'_>) -> PyResult<Self> {
        // SAFETY: has no preconditions.
        #[allow(unsafe_code)]
        let thread = unsafe { ffi::PyThread_get_thread_ident() } as u64;
        Ok(Self { thread, task: task(py)?.map(Bound::unbind), owner: Owner::current() })
    }

    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        Self { thread: self.thread, task: self.task.as_ref().map(|task| task.clone_ref(py)), owner: self.owner }
    }

    /// Whether it is one of this process: a forked child has none of its parent's but the one that forked.
    pub fn is_here(&self) -> bool {
        self.owner.is_here()
    }

    /// The task or the thread by its name.
    pub fn name(&self, py: Python<'_>) -> PyResult<String> {
        if let Some(task) = &self.task {
            let name = task.bind(py).call_method0(Name("get_name")).and_then(|name| name.extract::<String>());
            return Ok(format!("the task {:?}", name.unwrap_or_default()));
        }
        for thread in callback(py, "threads")?.call0()?.try_iter()? {
            let thread = thread?;
            if thread.getattr(Name("ident"))?.extract::<Option<u64>>()? == Some(self.thread) {
                return Ok(format!("the thread {:?}", thread.getattr(Name("name"))?.extract::<String>()?));
            }
        }
        Ok(format!("a thread that ended (its number was {})", self.thread))
    }
}

impl PartialEq for ThreadOrTask {
    fn eq(&self, other: &Self) -> bool {
        let task = |who: &Self| who.task.as_ref().map(Py::as_ptr);
        self.owner.is_same_thread(other.owner) && task(self) == task(other)
    }
}
