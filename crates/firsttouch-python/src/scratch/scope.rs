//! Scopes: NumPy uses a buffer here, from entering until leaving.
//!
//! A scope serves while it is open, in its own thread and process. Contexts leak: a child task, a callback and a thread that
//! was handed the context still refer to a scope that has ended or is not theirs, and pass their requests on. Ending a scope
//! has nothing to undo, as its buffer counts its blocks.

use crate::allocators::allocator::PyAllocator;
use crate::handlers::capsules::{self, after, nearest_open};
use crate::numpy::NumPy;
use crate::scratch::buffer::{PyBuffer, raw};
use firsttouch::allocator::Allocator;
use firsttouch::fork::forks;
use firsttouch::sync::thread;
use pyo3::prelude::*;
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

    /// Allocate raw memory.
    ///
    /// Parameters
    /// ----------
    /// nbytes : int or str
    ///     Size in bytes. Text such as ``"64 KiB"`` is accepted.
    /// alignment : int or str, optional
    ///     Alignment in bytes, a power of two up to 1 GiB.
    ///
    /// Returns
    /// -------
    /// memoryview
    ///     Writable bytes, which the view keeps alive.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If `alignment` is not such a power of two.
    /// MemoryError
    ///     If the buffer is full.
    #[pyo3(signature = (nbytes, alignment=None))]
    #[pyo3(text_signature = "($self, nbytes, alignment=64)")]
    fn alloc<'py>(
        slf: &Bound<'py, Self>,
        nbytes: &Bound<'py, PyAny>,
        alignment: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        raw(slf.as_super(), nbytes, alignment)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = if self.opening.is_open() { "open" } else { "ended" };
        format!("<{state} scope on {}>", self.buffer.bind(py).get().buffer().expression())
    }
}

/// A scope that was entered.
pub struct EnteredScope {
    opening: Arc<Opening>,
    /// The capsule of its handler, as NumPy's contexts know it.
    capsule: Py<PyAny>,
    buffer: Py<PyBuffer>,
    /// The number of the buffer's next request when it was entered.
    since: u64,
}

/// Opens a scope on `buffer` and lets it serve this context.
pub fn enter(buffer: &Bound<'_, PyBuffer>) -> PyResult<EnteredScope> {
    let numpy = NumPy::get(buffer.py())?;
    let before = nearest_open(numpy.current(buffer.py())?)?;
    let opening = Arc::new(Opening::here());
    let capsule = capsules::of_scope(buffer.get().buffer(), &opening, &before)?;
    numpy.set_current(&capsule)?;
    let since = buffer.get().buffer().serial();
    Ok(EnteredScope { opening, capsule: capsule.unbind(), buffer: buffer.clone().unbind(), since })
}

impl EnteredScope {
    /// The object that a `with` statement hands out.
    pub fn object(&self, py: Python<'_>) -> PyResult<Py<PyScope>> {
        let buffer = self.buffer.bind(py);
        let allocator = PyAllocator::of_scope(buffer.get().buffer().clone(), self.opening.clone());
        let capsule = capsules::named(py, buffer.as_super().get())?;
        let _ = allocator.capsule().set(py, capsule.clone().unbind());
        let object = PyScope { opening: self.opening.clone(), buffer: self.buffer.clone_ref(py) };
        Py::new(py, PyClassInitializer::from(allocator).add_subclass(object))
    }

    /// The buffer that it takes memory from.
    pub fn buffer<'a>(&'a self, py: Python<'a>) -> &'a PyBuffer {
        self.buffer.bind(py).get()
    }

    /// The number of the first request since it was entered, among all of its buffer's.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// Whether this thread entered it.
    pub fn is_own(&self) -> bool {
        self.opening.is_own()
    }

    /// Whether it is the scope of this capsule.
    pub fn has(&self, capsule: &Bound<'_, PyAny>) -> bool {
        self.capsule.is(capsule)
    }

    /// Ends the scope, and lets the nearest open one serve, or who served before them all. Where somebody else serves by
    /// now, or this is another context, nothing changes.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.opening.close();
        let (numpy, next) = (NumPy::get(py)?, after(self.capsule.bind(py))?);
        let there = numpy.set_current(&next)?;
        let here = if self.has(&there) { next.clone() } else { nearest_open(there)? };
        if here.is(&next) { Ok(()) } else { numpy.set_current(&here).map(drop) }
    }
}
