//! Scopes: NumPy uses a buffer here, from entering until leaving.
//!
//! A scope serves while it is open, in its own thread and process. Contexts leak: a child task, a callback and a thread that
//! was handed the context still refer to a scope that has ended or is not theirs, and pass their requests on. Ending a scope
//! has nothing to undo, as its buffer counts its blocks.

#![allow(unsafe_code)] // Safety: one reference to the base of an array that lives.

use crate::allocators::allocator::PyAllocator;
use crate::handlers::capsules::{self, after, nearest_open};
use crate::numpy::{NumPy, OWNDATA};
use crate::scratch::buffer::PyBuffer;
use crate::scratch::default_buffers::default_buffer;
use firsttouch::allocator::Allocator;
use firsttouch::fork::forks;
use firsttouch::sync::lock::Lock;
use firsttouch::sync::thread;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Whether a scope is open, and for whom.
pub struct Opening {
    /// The thread that opened it, while it is open; no thread has the number zero.
    thread: AtomicU64,
    /// The process that opened it, by its number of forks.
    process: u32,
}

const CLOSED: u64 = 0;

impl Opening {
    /// One that is open for the calling thread.
    fn here() -> Self {
        Self { thread: AtomicU64::new(thread()), process: forks() }
    }

    /// Ends it, from any thread.
    fn close(&self) {
        self.thread.store(CLOSED, Release);
    }

    /// Whether it is open, whoever asks.
    pub fn is_open(&self) -> bool {
        self.thread.load(Acquire) != CLOSED
    }

    /// Whether it serves the calling thread.
    #[inline]
    pub fn serves(&self) -> bool {
        self.is_own() && self.process == forks()
    }

    /// Whether the calling thread opened it.
    fn is_own(&self) -> bool {
        self.thread.load(Relaxed) == thread()
    }
}

/// Scratch memory for the duration of a block; arrays made in it stay valid for as long as they live.
///
/// See Also
/// --------
/// firsttouch.scratch : Entering it returns a scope.
#[pyclass(name = "Scope", module = "firsttouch", extends = PyAllocator, frozen, weakref)]
pub struct PyScope {
    opening: Arc<Opening>,
    buffer: Py<PyBuffer>,
}

#[pymethods]
impl PyScope {
    /// Buffer that the scope takes memory from.
    #[getter]
    fn buffer(&self, py: Python<'_>) -> Py<PyBuffer> {
        self.buffer.clone_ref(py)
    }

    /// Whether the block is still running.
    #[getter]
    fn is_open(&self) -> bool {
        self.opening.is_open()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = if self.opening.is_open() { "open" } else { "ended" };
        format!("<{state} scope on {}>", self.buffer.bind(py).get().buffer().expression())
    }
}

/// A scope that was entered, which ends with this object at the latest: Ctrl-C may come before the block begins.
#[pyclass(frozen, module = "firsttouch._firsttouch")]
pub struct EnteredScope {
    opening: Arc<Opening>,
    /// The capsule of its handler, as NumPy's contexts know it.
    capsule: Py<PyAny>,
    buffer: Py<PyBuffer>,
    /// The number of the buffer's next request when it was entered.
    since: u64,
}

/// Opens a scope on `buffer`, or else on the default one here, and lets it serve this context.
#[pyfunction]
#[pyo3(signature = (buffer))]
pub fn enter_scope(py: Python<'_>, buffer: Option<Bound<'_, PyBuffer>>) -> PyResult<EnteredScope> {
    let buffer = buffer.map_or_else(|| default_buffer(py), Ok)?;
    let numpy = NumPy::get(py)?;
    let before = nearest_open(numpy.current(py)?)?;
    let opening = Arc::new(Opening::here());
    let capsule = capsules::of_scope(buffer.get().buffer(), &opening, &before)?;
    numpy.set_current(&capsule)?;
    let since = buffer.get().buffer().serial();
    Ok(EnteredScope { opening, capsule: capsule.unbind(), buffer: buffer.unbind(), since })
}

impl EnteredScope {
    /// The object that a `with` statement hands out.
    fn object(&self, py: Python<'_>) -> PyResult<Py<PyScope>> {
        let buffer = self.buffer.bind(py);
        let allocator = PyAllocator::of_scope(buffer.get().buffer().clone(), self.opening.clone());
        let capsule = capsules::named(py, buffer.as_super().get())?;
        let _ = allocator.capsule().set(py, capsule.clone().unbind());
        let scope = PyScope { opening: self.opening.clone(), buffer: self.buffer.clone_ref(py) };
        Py::new(py, PyClassInitializer::from(allocator).add_subclass(scope))
    }
}

#[pymethods]
impl EnteredScope {
    /// Ends the scope, and lets the nearest open one serve, or who served before them all. Where somebody else serves by
    /// now, or this is another context, nothing changes.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.opening.close();
        let (numpy, next) = (NumPy::get(py)?, after(self.capsule.bind(py))?);
        let there = numpy.set_current(&next)?;
        let here = if self.capsule.is(&there) { next.clone() } else { nearest_open(there)? };
        if here.is(&next) { Ok(()) } else { numpy.set_current(&here).map(drop) }
    }

    /// Its chunks that are empty now go back after a while.
    fn settle(&self, py: Python<'_>) {
        self.buffer.bind(py).get().buffer().settle();
    }

    /// The array that owns the memory of `array`, if it was made in the scope, and lies in a chunk of its buffer.
    fn pinned<'py>(&self, array: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = array.py();
        let mut owner = array.clone();
        while let Some(fields) = NumPy::get(py)?.array(&owner) {
            if fields.flags & OWNDATA == 0 {
                // SAFETY: the array keeps a reference to its base.
                let Some(base) = (unsafe { Bound::from_borrowed_ptr_or_opt(py, fields.base) }) else { break };
                owner = base;
                continue;
            }
            let block =
                NonNull::new(fields.data.cast()).and_then(|data| self.buffer.bind(py).get().buffer().block(data));
            return Ok(block.filter(|&(_, serial)| serial >= self.since).map(|_| owner));
        }
        Ok(None)
    }
}

impl Drop for EnteredScope {
    fn drop(&mut self) {
        if self.opening.is_open() {
            Python::try_attach(|py| self.close(py).unwrap_or_else(|error| error.write_unraisable(py, None)));
        }
    }
}

/// What opens scopes for `with` statements, in any thread and task. It is no Python, as Ctrl-C may come at the beginning of any
/// function that is: the scope would stay.
#[pyclass(module = "firsttouch._firsttouch", subclass, frozen, weakref)]
pub struct Scopes {
    buffer: Option<Py<PyBuffer>>,
    entered: Lock<Vec<EnteredScope>>,
}

#[pymethods]
impl Scopes {
    #[new]
    #[pyo3(signature = (buffer))]
    fn new(buffer: Option<Py<PyBuffer>>) -> Self {
        Self { buffer, entered: Lock::new(Vec::new()) }
    }

    #[getter]
    fn buffer(&self, py: Python<'_>) -> Option<Py<PyBuffer>> {
        self.buffer.as_ref().map(|buffer| buffer.clone_ref(py))
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<PyScope>> {
        let entered = enter_scope(py, self.buffer(py).map(|buffer| buffer.into_bound(py)))?;
        let object = entered.object(py)?;
        self.entered.lock().push(entered);
        Ok(object)
    }

    /// Ends the scope that serves here, as tasks may share this; else the last that this thread entered; else the last of all,
    /// as of a generator that another thread closes.
    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        let current = NumPy::get(py)?.current(py)?;
        let last = {
            let mut entered = self.entered.lock();
            let here = entered.iter().rposition(|entered| entered.capsule.is(&current));
            let own = || entered.iter().rposition(|entered| entered.opening.is_own());
            let at = here.or_else(own).or(entered.len().checked_sub(1));
            at.map(|at| entered.remove(at))
        };
        let Some(last) = last else { return Ok(()) };
        last.close(py)?;
        last.settle(py);
        Ok(())
    }
}
