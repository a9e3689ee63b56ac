//! The default buffers of a thread or an asyncio task: made on first use, and dropped with it.

use crate::python::errors::PyRuntimeError;
use crate::python::guarded::Guarded;
use crate::python::once::{Interned, Once};
use crate::python::values::{Dict, Name};
use crate::scratch::buffer::PyBuffer;
use crate::scratch::{buffers, thread_or_task};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// The key of a thread's home in the dictionary of the thread.
static KEY: Interned = Interned::new("firsttouch.scratch");
/// The homes of tasks, in a weak dictionary.
static TASKS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

#[derive(Default)]
struct BufferSlots {
    plain: Option<Py<PyBuffer>>,
    debug: Option<Py<PyBuffer>>,
    /// Those that `using_buffer` put in the default's place, the innermost last.
    instead: Vec<Py<PyBuffer>>,
}

/// The buffers of one thread or task.
#[pyclass(frozen)]
pub struct DefaultBuffers {
    own: Guarded<BufferSlots>,
    /// Buffers of the kinds that users registered.
    kinds: Py<PyDict>,
}

impl DefaultBuffers {
    fn new(py: Python<'_>) -> PyResult<Py<Self>> {
        Py::new(py, Self { own: Guarded::default(), kinds: Dict::new(py)?.done().unbind() })
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
        match thread_or_task::task(py)? {
            Some(task) => Self::of_task(&task),
            None => Self::of_thread(py),
        }
    }

    /// The default buffer.
    pub fn buffer<'py>(&self, py: Python<'py>, debug: bool) -> PyResult<Bound<'py, PyBuffer>> {
        {
            let own = self.own.lock(py);
            let plain = if debug { own.debug.as_ref() } else { own.instead.last().or(own.plain.as_ref()) };
            if let Some(found) = plain {
                return Ok(found.bind(py).clone());
            }
        }
        let made = buffers::default(py, debug)?;
        let mut own = self.own.lock(py);
        let place = if debug { &mut own.debug } else { &mut own.plain };
        Ok(place.get_or_insert(made).bind(py).clone())
    }
}

/// Makes what the first task would have made.
pub fn look_up(py: Python<'_>) -> PyResult<()> {
    py.get_type::<DefaultBuffers>();
    DefaultBuffers::tasks(py).map(drop)
}

/// The default buffer of this thread or task.
#[pyfunction]
fn home_buffer(py: Python<'_>) -> PyResult<Bound<'_, PyBuffer>> {
    DefaultBuffers::here(py)?.get().buffer(py, false)
}

/// The buffers of registered kinds of this thread or task, by their kinds.
#[pyfunction]
fn home_kinds(py: Python<'_>) -> PyResult<Py<PyDict>> {
    Ok(DefaultBuffers::here(py)?.get().kinds.clone_ref(py))
}

/// Puts `buffer` in the place of the default one of this thread or task; its home, for `home_leave`.
#[pyfunction]
fn home_enter<'py>(py: Python<'py>, buffer: Bound<'py, PyBuffer>) -> PyResult<Bound<'py, DefaultBuffers>> {
    let home = DefaultBuffers::here(py)?;
    home.get().own.lock(py).instead.push(buffer.unbind());
    Ok(home)
}

/// What tells this thread or task from others.
#[pyfunction]
fn home(py: Python<'_>) -> PyResult<Bound<'_, DefaultBuffers>> {
    DefaultBuffers::here(py)
}

/// Ends the innermost `home_enter` of this buffer.
#[pyfunction]
fn home_leave(home: &Bound<'_, DefaultBuffers>, buffer: &Bound<'_, PyBuffer>) {
    let gone = {
        let mut own = home.get().own.lock(home.py());
        own.instead.iter().rposition(|other| other.is(buffer)).map(|at| own.instead.remove(at))
    };
    drop(gone);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(home_buffer, module)?)?;
    module.add_function(wrap_pyfunction!(home_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(home, module)?)?;
    module.add_function(wrap_pyfunction!(home_enter, module)?)?;
    module.add_function(wrap_pyfunction!(home_leave, module)?)
}
