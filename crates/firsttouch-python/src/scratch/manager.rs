//! `scratch`: a context manager, and a decorator, whose local arrays are freed before the scope ends.

use crate::numpy::c_api::NumPy;
use crate::python::callbacks::callback;
use crate::python::errors::{PyTypeError, PyValueError};
use crate::python::guarded::Guarded;
use crate::python::values::{Name, ToPython};
use crate::scratch::buffer::PyBuffer;
use crate::scratch::default_buffers::DefaultBuffers;
use crate::scratch::diagnostics;
use crate::scratch::entered_scope::{EnteredScope, enter};
use crate::scratch::result::{self, ResultOptions};
use crate::scratch::scope::PyScope;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Use scratch memory for a block of code, or for each call of a function.
///
/// ``with scratch() as s:`` serves the arrays of 1 KiB and more that NumPy makes in the block, and all that `s` makes.
/// ``@scratch`` gives each call of a function a scope of its own.
///
/// Parameters
/// ----------
/// buffer_or_function : Buffer, OwnScratch or callable, optional
///     Buffer to use, or the function to decorate. The default buffer is that of this thread or asyncio task.
/// result : {"copy", "keep"}, optional
///     Of a decorated function: whether arrays that it returns are copied to ordinary memory, or left where they are.
/// escape : {"keep", "warn", "raise"}, optional
///     Of a decorated function: what happens if other arrays outlive the call. ``"warn"`` gives a
///     :exc:`firsttouch.buffers.EscapeWarning`, ``"raise"`` a :exc:`firsttouch.buffers.EscapeError`.
/// debug : bool, optional
///     Whether the scope is on a buffer that checks for writes to freed memory and records the line that made each
///     array.
///
/// Raises
/// ------
/// TypeError
///     If an argument is not one of the above, or the function is a generator or coroutine function.
/// ValueError
///     If `result` or `escape` is not one of these words.
///
/// See Also
/// --------
/// ScratchBuffer, FixedBuffer : The buffers.
/// default_buffer : The buffer of this thread or task.
///
/// Notes
/// -----
/// Allocating bumps a pointer, and memory that dies in the scope is used again at once, which keeps a loop of
/// temporaries in the processor's cache. An array that outlives the scope is never taken away: its memory is set aside
/// until it dies.
#[pyclass(name = "scratch", module = "firsttouch", frozen, dict, weakref)]
pub struct Scratch {
    buffer: Option<Py<PyBuffer>>,
    function: Option<Py<PyAny>>,
    options: ResultOptions,
    debug: bool,
    entered: Guarded<Vec<EnteredScope>>,
}

/// Makes what the first manager would have made: PyO3 finds out once how to make objects with a dictionary.
pub fn look_up(py: Python<'_>) -> PyResult<()> {
    let (buffer, function, entered) = (None, None, Guarded::default());
    Py::new(py, Scratch { buffer, function, options: ResultOptions::new("copy", "keep")?, debug: false, entered })
        .map(drop)
}

impl Scratch {
    fn enter(&self, py: Python<'_>) -> PyResult<EnteredScope> {
        match &self.buffer {
            Some(buffer) => enter(buffer.bind(py), true),
            None => enter(&DefaultBuffers::here(py)?.get().buffer(py, self.debug)?, false),
        }
    }

    /// The one that serves here, as tasks may share it; else the last that this thread entered; else the last of all,
    /// as of a generator that another thread closes.
    fn last(&self, py: Python<'_>) -> Option<EnteredScope> {
        let current = NumPy::get(py).and_then(|numpy| numpy.current(py)).ok();
        let mut entered = self.entered.lock(py);
        let here = |entered: &EnteredScope| current.as_ref().is_some_and(|current| entered.parts.capsule.is(current));
        let own = |entered: &EnteredScope| entered.parts.scope.owner().is_some_and(|owner| owner.is_current());
        let at = entered.iter().rposition(here).or_else(|| entered.iter().rposition(own));
        let at = at.or(entered.len().checked_sub(1))?;
        Some(entered.remove(at))
    }

    fn decorated(&self, function: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let py = function.py();
        let made = Self {
            buffer: self.buffer.as_ref().map(|buffer| buffer.clone_ref(py)),
            function: Some(function.clone().unbind()),
            options: self.options,
            debug: self.debug,
            entered: Guarded::default(),
        };
        let made = Py::new(py, made)?;
        callback(py, "dress")?.call1((&made, function))?;
        Ok(made)
    }
}

/// A manager that goes while its block is open, as when Ctrl-C comes between `__enter__` and the block, ends it.
impl Drop for Scratch {
    fn drop(&mut self) {
        Python::try_attach(|py| {
            let entered = std::mem::take(&mut *self.entered.lock(py));
            for entered in entered.into_iter().rev() {
                let stepped = entered.step_back(py);
                entered.close(py);
                stepped.unwrap_or_else(|error| error.write_unraisable(py, None));
            }
        });
    }
}

#[pymethods]
impl Scratch {
    #[new]
    #[pyo3(signature = (buffer_or_function=None, /, *, result="copy", escape="keep", debug=false))]
    fn new(
        py: Python<'_>,
        buffer_or_function: Option<&Bound<'_, PyAny>>,
        result: &str,
        escape: &str,
        debug: bool,
    ) -> PyResult<Py<Self>> {
        let options = ResultOptions::new(result, escape)?;
        let mut made = Self { buffer: None, function: None, options, debug, entered: Guarded::default() };
        let Some(given) = buffer_or_function else { return Py::new(py, made) };
        let buffer = match given.cast::<PyBuffer>() {
            Ok(buffer) => buffer.clone(),
            Err(_) => {
                let found = callback(py, "buffer_or_function")?.call1((given,))?;
                match found.cast_into::<PyBuffer>() {
                    Ok(buffer) => buffer,
                    Err(_) => return made.decorated(given),
                }
            }
        };
        if debug && !buffer.get().debug {
            return Err(PyValueError::new_err(format!(
                "debug=True needs a buffer that was made with debug=True, and {} was not",
                buffer.repr()?
            )));
        }
        made.buffer = Some(buffer.unbind());
        Py::new(py, made)
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<PyScope>> {
        if self.function.is_some() {
            return Err(PyTypeError::new_err("a decorated function is not a context manager: call it"));
        }
        self.options.check_block()?;
        let mut entered = self.enter(py)?;
        match entered.object(py) {
            Ok(object) => {
                self.entered.lock(py).push(entered);
                Ok(object)
            }
            Err(error) => {
                let stepped = entered.step_back(py); // no `with` block is there to leave it
                entered.close(py);
                stepped.and(Err(error))
            }
        }
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let Some(entered) = self.last(py) else { return Ok(false) };
        let stepped = entered.step_back(py);
        let closed = entered.close(py);
        stepped?;
        if !error.is_none() {
            diagnostics::explain(error)?;
        }
        diagnostics::damage(py, closed.damage)?;
        Ok(false)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let Some(function) = &self.function else {
            if kwargs.is_some() || args.len() != 1 {
                return Err(PyTypeError::new_err("scratch(...) decorates one function, or opens a `with` block"));
            }
            let function = args.get_item(0)?;
            callback(py, "function")?.call1((&function,))?;
            return Ok(self.decorated(&function)?.into_bound(py).into_any());
        };
        let entered = self.enter(py)?;
        let returned = function.bind(py).call(args, kwargs);
        result::settled(entered, function.bind(py), returned, self.options)
    }

    /// A method, where a decorated function stands in a class.
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        instance: Option<&Bound<'py, PyAny>>,
        _owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(instance) = instance else { return Ok(slf.clone().into_any()) };
        slf.py().import(Name("types"))?.getattr(Name("MethodType"))?.call1((slf, instance))
    }

    // The function may know what it was decorated to, as by recursion in a closure; it breaks such a cycle itself.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        visit.call(&self.buffer)
    }

    /// Pickles a decorated function as Python does: by its name.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match &slf.get().function {
            Some(_) => slf.getattr(Name("__qualname__")),
            None => Err(PyTypeError::new_err("a scratch() that decorates nothing cannot be pickled")),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<ToPython<String>> {
        Ok(ToPython(match (&self.function, &self.buffer) {
            (Some(function), _) => format!("<scratch {}>", function.bind(py).repr()?),
            (None, Some(buffer)) => format!("scratch({})", buffer.bind(py).repr()?),
            (None, None) => "scratch()".into(),
        }))
    }
}
