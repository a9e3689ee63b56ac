//! The default buffers of a thread or an asyncio task: made on first use, and dropped with it.

use crate::python::gil::{Guarded, Interned, Once};
use crate::python::values::{Name, PyRuntimeError};
use crate::scratch::buffer::{self, PyBuffer};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// The key of a thread's home in the dictionary of the thread.
static KEY: Interned = Interned::new("firsttouch.scratch");
/// The homes of tasks, in a weak dictionary.
static TASKS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

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
fn task(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let Some([running, current]) = asyncio(py)? else { return Ok(None) };
    let running = running.bind(py).call0()?;
    if running.is_none() {
        return Ok(None);
    }
    let task = current.bind(py).call1((running,))?;
    Ok((!task.is_none()).then_some(task))
}

#[derive(Default)]
struct BufferSlots {
    growing: Option<Py<PyBuffer>>,
    fixed: Option<Py<PyBuffer>>,
    /// Those that `using_buffer` put in the default's place, the innermost last.
    instead: Vec<Py<PyBuffer>>,
}

/// Which of the default buffers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Growing,
    Fixed,
}

impl BufferSlots {
    fn place(&mut self, kind: Kind) -> &mut Option<Py<PyBuffer>> {
        match kind {
            Kind::Growing => &mut self.growing,
            Kind::Fixed => &mut self.fixed,
        }
    }
}

/// The buffers of one thread or task.
#[pyclass(frozen)]
pub struct DefaultBuffers {
    own: Guarded<BufferSlots>,
}

impl DefaultBuffers {
    fn new(py: Python<'_>) -> PyResult<Py<Self>> {
        Py::new(py, Self { own: Guarded::default() })
    }

    /// The homes of tasks: made before a call needs it.
    fn tasks(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
        let tasks = TASKS.get_or_make(py, || {
            PyResult::Ok(py.import(Name("weakref"))?.getattr(Name("WeakKeyDictionary"))?.call0()?.unbind())
        })?;
        Ok(tasks.bind(py))
    }

    fn of_task<'py>(task: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let py = task.py();
        let tasks = Self::tasks(py)?;
        let found = tasks.call_method1(Name("get"), (task,))?;
        if !found.is_none() {
            return Ok(found.cast_into::<Self>()?);
        }
        let home = Self::new(py)?.into_bound(py);
        tasks.set_item(task, &home)?;
        Ok(home)
    }

    fn of_thread(py: Python<'_>) -> PyResult<Bound<'_, Self>> {
        // SAFETY: borrows the dictionary of the thread that holds the GIL; it lives as long as the thread.
        #[allow(unsafe_code)]
        let dict = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyThreadState_GetDict()) };
        let dict = dict.ok_or_else(|| PyRuntimeError::new_err("this thread is not one of Python's any more"))?;
        let dict = dict.cast_into::<PyDict>()?;
        let key = KEY.get(py)?;
        if let Some(found) = dict.get_item(key)? {
            return Ok(found.cast_into::<Self>()?);
        }
        let home = Self::new(py)?.into_bound(py);
        dict.set_item(key, &home)?;
        Ok(home)
    }

    /// The home of who runs now.
    pub fn here(py: Python<'_>) -> PyResult<Bound<'_, Self>> {
        match task(py)? {
            Some(task) => Self::of_task(&task),
            None => Self::of_thread(py),
        }
    }

    /// The default buffer, or one that `using_buffer` put in its place.
    pub fn buffer<'py>(&self, py: Python<'py>, kind: Kind) -> PyResult<Bound<'py, PyBuffer>> {
        {
            let mut own = self.own.lock(py);
            let instead = if kind == Kind::Growing { own.instead.last() } else { None };
            if let Some(found) = instead
                .map(|found| found.clone_ref(py))
                .or_else(|| own.place(kind).as_ref().map(|found| found.clone_ref(py)))
            {
                return Ok(found.into_bound(py));
            }
        }
        let made = match kind {
            Kind::Fixed => buffer::default_fixed(py)?,
            Kind::Growing => buffer::default_growing(py)?,
        };
        let mut own = self.own.lock(py);
        Ok(own.place(kind).get_or_insert(made).bind(py).clone())
    }
}

/// Makes what the first task would have made.
pub fn look_up(py: Python<'_>) -> PyResult<()> {
    py.get_type::<DefaultBuffers>();
    DefaultBuffers::tasks(py).map(drop)
}

/// The default buffer of this thread or task, of a fixed size or one that grows.
#[pyfunction]
pub fn home_buffer(py: Python<'_>, fixed: bool) -> PyResult<Bound<'_, PyBuffer>> {
    DefaultBuffers::here(py)?.get().buffer(py, if fixed { Kind::Fixed } else { Kind::Growing })
}

/// Puts `buffer` in the place of the default one of this thread or task; its home, for `home_leave`.
#[pyfunction]
pub fn home_enter<'py>(py: Python<'py>, buffer: Bound<'py, PyBuffer>) -> PyResult<Bound<'py, DefaultBuffers>> {
    let home = DefaultBuffers::here(py)?;
    home.get().own.lock(py).instead.push(buffer.unbind());
    Ok(home)
}

/// Ends the innermost `home_enter` of this buffer.
#[pyfunction]
pub fn home_leave(home: &Bound<'_, DefaultBuffers>, buffer: &Bound<'_, PyBuffer>) {
    let gone = {
        let mut own = home.get().own.lock(home.py());
        own.instead.iter().rposition(|other| other.is(buffer)).map(|at| own.instead.remove(at))
    };
    drop(gone);
}
