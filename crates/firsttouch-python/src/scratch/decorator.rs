//! `scratch`: a context manager, and a decorator, whose local arrays are freed before the scope ends.

use crate::numpy::{NumPy, OWNDATA, WRITEABLE};
use crate::python::callback;
use crate::python::gil::Guarded;
use crate::python::values::{Name, PyTypeError, ToPython};
use crate::scratch::buffer::PyBuffer;
use crate::scratch::default_buffers::{DefaultBuffers, Kind};
use crate::scratch::refuse;
use crate::scratch::scope::{EnteredScope, PyScope, enter};
use pyo3::exceptions::PyMemoryError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::collections::HashSet;
use std::ptr::NonNull;

/// Use scratch memory for a block of code, or for each call of a function.
///
/// ``with scratch() as s:`` serves the arrays of 1 KiB and more that NumPy makes in the block, and all that `s` makes.
/// ``@scratch`` gives each call of a function a scope of its own.
///
/// Parameters
/// ----------
/// buffer_or_function : Buffer or callable, optional
///     Buffer to use, or the function to decorate. The default buffer is that of this thread or asyncio task.
///
/// Raises
/// ------
/// TypeError
///     If an argument is not one of the above, or the function is a generator or coroutine function.
///
/// See Also
/// --------
/// ScratchBuffer, FixedBuffer : The buffers.
/// default_buffer : The buffer of this thread or task.
///
/// Notes
/// -----
/// Allocating bumps a pointer. Arrays of an eighth of a chunk and more (16 KiB) come from the pool, which is as fast for them.
/// An array that outlives the scope is never taken away: its chunk is not used again until it dies.
///
/// Examples
/// --------
/// >>> x = np.linspace(0, 1, 1000)
/// >>> with ft.scratch() as s:
/// ...     work = s.empty(1000)
/// ...     y = np.sqrt(x, out=work) + 1
///
/// >>> @ft.scratch
/// ... def smooth(x):
/// ...     left, right = np.roll(x, 1), np.roll(x, -1)
/// ...     return (left + 2 * x + right) / 4
/// >>> smooth(x).shape
/// (1000,)
#[pyclass(name = "scratch", module = "firsttouch", frozen, dict, weakref)]
pub struct Scratch {
    buffer: Option<Py<PyBuffer>>,
    function: Option<Py<PyAny>>,
    entered: Guarded<Vec<EnteredScope>>,
}

/// Makes what the first manager would have made, as PyO3 finds out once how to make objects with a dictionary.
pub fn look_up(py: Python<'_>) -> PyResult<()> {
    let (buffer, function, entered) = (None, None, Guarded::default());
    Py::new(py, Scratch { buffer, function, entered }).map(drop)
}

impl Scratch {
    fn enter(&self, py: Python<'_>) -> PyResult<EnteredScope> {
        match &self.buffer {
            Some(buffer) => enter(buffer.bind(py)),
            None => enter(&DefaultBuffers::here(py)?.get().buffer(py, Kind::Growing)?),
        }
    }

    /// The one that serves here, as tasks may share it; else the last that this thread entered; else the last of all,
    /// as of a generator that another thread closes.
    fn last(&self, py: Python<'_>) -> Option<EnteredScope> {
        let current = NumPy::get(py).and_then(|numpy| numpy.current(py)).ok();
        let mut entered = self.entered.lock(py);
        let here = |entered: &EnteredScope| current.as_ref().is_some_and(|current| entered.has(current));
        let at = entered.iter().rposition(here).or_else(|| entered.iter().rposition(EnteredScope::is_own));
        let at = at.or(entered.len().checked_sub(1))?;
        Some(entered.remove(at))
    }

    fn decorated(&self, function: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let py = function.py();
        let made = Self {
            buffer: self.buffer.as_ref().map(|buffer| buffer.clone_ref(py)),
            function: Some(function.clone().unbind()),
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
                entered.close(py).unwrap_or_else(|error| error.write_unraisable(py, None));
            }
        });
    }
}

#[pymethods]
impl Scratch {
    #[new]
    #[pyo3(signature = (buffer_or_function=None, /, **others))]
    #[pyo3(text_signature = "(buffer_or_function=None, /)")]
    fn new(
        py: Python<'_>,
        buffer_or_function: Option<&Bound<'_, PyAny>>,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Self>> {
        refuse("scratch", others, &["buffer_or_function"])?;
        let mut made = Self { buffer: None, function: None, entered: Guarded::default() };
        let Some(given) = buffer_or_function else { return Py::new(py, made) };
        let Ok(buffer) = given.cast::<PyBuffer>() else {
            callback(py, "function")?.call1((given,))?;
            return made.decorated(given);
        };
        made.buffer = Some(buffer.clone().unbind());
        Py::new(py, made)
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<PyScope>> {
        if self.function.is_some() {
            return Err(PyTypeError::new_err("a decorated function is not a context manager: call it"));
        }
        let entered = self.enter(py)?;
        let object = entered.object(py);
        if object.is_err() {
            entered.close(py)?; // no `with` block is there to leave it
        } else {
            self.entered.lock(py).push(entered);
        }
        object
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let Some(entered) = self.last(py) else { return Ok(false) };
        entered.close(py)?;
        entered.buffer(py).buffer().settle();
        if !error.is_none() {
            explain(error)?;
        }
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
        // From here on memory is that of who is around: copies belong there.
        let closed = entered.close(py);
        let returned = returned.and_then(|value| copied(&entered, value));
        entered.buffer(py).buffer().settle();
        closed?;
        let value = returned.inspect_err(|error| {
            let _ = explain(error.value(py).as_any());
        })?;
        Ok(value)
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

/// Containers inside one another that are looked into. What lies deeper stays where it is.
const DEPTH: usize = 8;

/// An array, the array that owns its memory, and its copy once there is one.
type Escaping<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

/// The arrays of a result that lie in a chunk of a scope's buffer: alone, or in tuples, lists and dicts.
struct Found<'a, 'py> {
    scope: &'a EnteredScope,
    numpy: &'static NumPy,
    arrays: Vec<Escaping<'py>>,
    containers: HashSet<usize>,
}

/// The array that owns the memory of `array`, through those that it is a view of. `None` where another object owns it.
fn owner<'py>(numpy: &NumPy, array: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let mut at = array.clone();
    loop {
        let fields = numpy.array(&at)?;
        if fields.flags & OWNDATA != 0 {
            return Some(at);
        }
        // SAFETY: the array keeps a reference to its base.
        #[allow(unsafe_code)]
        let base = unsafe { Bound::from_borrowed_ptr_or_opt(array.py(), fields.base) };
        at = base?;
    }
}

/// Whether the block of an array that owns its memory was made in a scope, and lies in a chunk of its buffer.
fn pins(scope: &EnteredScope, numpy: &NumPy, owner: &Bound<'_, PyAny>) -> bool {
    let Some(address) = numpy.array(owner).and_then(|fields| NonNull::new(fields.data.cast())) else { return false };
    let block = scope.buffer(owner.py()).buffer().block(address);
    block.is_some_and(|(_, serial)| serial >= scope.since())
}

/// The items of a tuple, a list or a dict's values, where `value` is exactly one.
fn items<'py>(value: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return Some(tuple.iter().collect());
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        return Some(list.iter().collect());
    }
    value.cast_exact::<PyDict>().ok().map(|dict| dict.values().iter().collect())
}

impl<'a, 'py> Found<'a, 'py> {
    fn new(scope: &'a EnteredScope, numpy: &'static NumPy) -> Self {
        Self { scope, numpy, arrays: Vec::new(), containers: HashSet::new() }
    }

    fn look(&mut self, value: &Bound<'py, PyAny>, depth: usize) {
        if self.numpy.is_exact(value) {
            let known = self.arrays.iter().any(|(array, ..)| array.is(value));
            let owner = owner(self.numpy, value).filter(|_| !known);
            if let Some(owner) = owner.filter(|owner| pins(self.scope, self.numpy, owner)) {
                self.arrays.push((value.clone(), owner, None));
            }
        } else if depth > 0
            && let Some(items) = items(value)
            && self.containers.insert(value.as_ptr() as usize)
        {
            items.iter().for_each(|item| self.look(item, depth - 1));
        }
    }

    /// Copies the arrays. Those that share memory with one another stay, as they would not in their copies, and so do views
    /// that are larger than their memory.
    fn copy(&mut self) -> PyResult<()> {
        for at in 0..self.arrays.len() {
            let (array, owner, _) = &self.arrays[at];
            let alone = self.arrays.iter().filter(|(_, other, _)| other.is(owner)).count() == 1;
            let nbytes = |array: &Bound<'py, PyAny>| array.getattr(Name("nbytes"))?.extract::<usize>();
            if alone && (array.is(owner) || nbytes(array)? <= nbytes(owner)?) {
                let copy = copy(self.numpy, array)?;
                self.arrays[at].2 = Some(copy);
            }
        }
        self.containers.clear();
        Ok(())
    }

    /// The value with its copies: lists and dicts stay the same objects, tuples are made again.
    fn replaced(&mut self, value: &Bound<'py, PyAny>, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.numpy.is_exact(value) {
            return Ok(self.arrays.iter().find(|(array, ..)| array.is(value)).and_then(|(.., copy)| copy.clone()));
        }
        if depth == 0 || items(value).is_none() || !self.containers.insert(value.as_ptr() as usize) {
            return Ok(None);
        }
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            for item in dict.items() {
                let (key, item) = item.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
                if let Some(new) = self.replaced(&item, depth - 1)? {
                    dict.set_item(key, new)?;
                }
            }
            return Ok(None);
        }
        let mut all = items(value).unwrap_or_default();
        let mut changed = false;
        for (at, item) in all.iter_mut().enumerate() {
            let Some(new) = self.replaced(item, depth - 1)? else { continue };
            if let Ok(list) = value.cast_exact::<PyList>() {
                list.set_item(at, &new)?;
            }
            (*item, changed) = (new, true);
        }
        if changed && value.is_exact_instance_of::<PyTuple>() {
            return PyTuple::new(value.py(), all).map(|tuple| Some(tuple.into_any()));
        }
        Ok(None)
    }
}

/// A copy in the same order, read-only if the array is.
fn copy<'py>(numpy: &NumPy, array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let copy = numpy.copy(array)?;
    if numpy.array(array).is_some_and(|fields| fields.flags & WRITEABLE == 0) {
        copy.getattr(Name("flags"))?.setattr(Name("writeable"), false)?;
    }
    Ok(copy)
}

/// What a function returns, with copies of those of its arrays that would keep a chunk of the buffer alive.
fn copied<'py>(scope: &EnteredScope, returned: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = NumPy::get(returned.py())?;
    // The usual case needs no search: one array that owns its memory.
    if numpy.is_exact(&returned) && numpy.array(&returned).is_some_and(|fields| fields.flags & OWNDATA != 0) {
        return if pins(scope, numpy, &returned) { copy(numpy, &returned) } else { Ok(returned) };
    }
    let mut found = Found::new(scope, numpy);
    found.look(&returned, DEPTH);
    if found.arrays.is_empty() {
        return Ok(returned);
    }
    found.copy()?;
    Ok(found.replaced(&returned, DEPTH)?.unwrap_or(returned))
}

/// Adds what NumPy's `MemoryError` does not say itself: it knows nothing of buffers.
fn explain(error: &Bound<'_, PyAny>) -> PyResult<()> {
    if !error.is_instance_of::<PyMemoryError>() || error.get_type().qualname()? != "_ArrayMemoryError" {
        return Ok(());
    }
    callback(error.py(), "add_reason")?.call1((error,)).map(drop)
}
