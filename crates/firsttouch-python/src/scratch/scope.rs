//! Scopes: NumPy uses a buffer here, from entering until leaving.
//!
//! A scope serves while it is open, in its own thread and process. Contexts leak: a child task, a callback and a thread that
//! was handed the context still refer to a scope that has ended or is not theirs, and pass their requests on. Ending a scope
//! has nothing to undo, as its buffer counts its blocks.

use crate::allocators::allocator::PyAllocator;
use crate::handlers::capsules::{self, nearest_open};
use crate::handlers::handler::Handler;
use crate::numpy::NumPy;
use crate::python::gil::Guarded;
use crate::scratch::buffer::{PyBuffer, raw};
use firsttouch::allocator::Allocator;
use firsttouch::fork::forks;
use firsttouch::sync::thread;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Whether a scope is open, and for whom.
#[derive(Default)]
pub struct Opening {
    /// The thread and the process that opened it, while it is open; no thread has the number zero.
    thread: AtomicU64,
    process: AtomicU32,
}

const CLOSED: u64 = 0;

impl Opening {
    /// Opens it for the calling thread.
    fn open(&self) {
        self.process.store(forks(), Relaxed);
        self.thread.store(thread(), Release);
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
        self.is_own() && self.process.load(Relaxed) == forks()
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

/// A scope as NumPy's contexts know it: the capsule of its handler.
struct Seat {
    opening: Arc<Opening>,
    capsule: Py<PyAny>,
    /// Whether what served before is NumPy's default capsule.
    is_plain: bool,
    /// The thread that made it.
    thread: u64,
}

/// Ended scopes kept for each buffer: nesting is seldom deeper.
const MAX_KEPT: usize = 8;

/// Seats of one buffer whose scopes ended. Opening one again takes a third of the time of making one.
#[derive(Default)]
pub struct EndedScopes(Guarded<Vec<Seat>>);

impl EndedScopes {
    /// A seat of this thread that no array, context or variable knows any more.
    fn take(&self, py: Python<'_>) -> Option<Seat> {
        let mut kept = self.0.lock(py);
        let known = |seat: &Seat| capsules::references(seat.capsule.bind(py)) > 1;
        let at = kept.iter().rposition(|seat| seat.thread == thread() && !known(seat))?;
        Some(kept.swap_remove(at))
    }

    /// Keeps a seat. One that has to keep what served before it, for contexts that still know it, ends with them instead.
    fn put(&self, py: Python<'_>, mut seat: Seat) -> PyResult<()> {
        if !seat.is_plain {
            if capsules::references(seat.capsule.bind(py)) > 1 {
                return Ok(());
            }
            seat.set_before(&NumPy::get(py)?.default_capsule(py))?;
        }
        let oldest = {
            let mut kept = self.0.lock(py);
            kept.push(seat);
            if kept.len() > MAX_KEPT { Some(kept.remove(0)) } else { None }
        };
        drop(oldest); // no borrow lives: the end of an allocator may run code of its own
        Ok(())
    }
}

impl Seat {
    /// A seat on `buffer`, after which `before` serves again.
    fn new(buffer: &Bound<'_, PyBuffer>, before: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = before.py();
        let is_plain = before.is(NumPy::get(py)?.default_capsule(py));
        let around = if is_plain { None } else { capsules::handler(before)?.and_then(Handler::scope) };
        if let Some((_, chain)) = around {
            // Where each scope is opened before the last one is left, the chain would have no end.
            let next = chain.lock(py).clone_ref(py);
            let next = nearest_open(next.into_bound(py))?.unbind();
            let gone = std::mem::replace(&mut *chain.lock(py), next);
            drop(gone);
        }
        if let Some(mut seat) = buffer.get().ended_scopes.take(py) {
            if !(is_plain && seat.is_plain) {
                seat.set_before(before)?;
            }
            return Ok(seat);
        }
        let opening = Arc::default();
        let capsule = capsules::of_scope(buffer.get().buffer(), &opening, before)?.unbind();
        Ok(Self { opening, capsule, is_plain, thread: thread() })
    }

    fn set_before(&mut self, before: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = before.py();
        if let Some((_, place)) = capsules::handler(self.capsule.bind(py))?.and_then(Handler::scope) {
            let gone = std::mem::replace(&mut *place.lock(py), before.clone().unbind());
            drop(gone);
        }
        self.is_plain = before.is(NumPy::get(py)?.default_capsule(py));
        Ok(())
    }
}

/// A scope that was entered.
pub struct EnteredScope {
    seat: Seat,
    buffer: Py<PyBuffer>,
    /// Of the object that a `with` statement handed out.
    object: Option<Arc<Opening>>,
    /// The number of the buffer's next request when it was entered.
    since: u64,
}

/// Opens a scope on `buffer` and lets it serve this context.
pub fn enter(buffer: &Bound<'_, PyBuffer>) -> PyResult<EnteredScope> {
    let py = buffer.py();
    let numpy = NumPy::get(py)?;
    let before = nearest_open(numpy.current(py)?)?;
    let seat = Seat::new(buffer, &before)?;
    seat.opening.open();
    numpy.set_current(seat.capsule.bind(py)).inspect_err(|_| seat.opening.close())?;
    let since = buffer.get().buffer().serial();
    Ok(EnteredScope { seat, buffer: buffer.clone().unbind(), object: None, since })
}

impl EnteredScope {
    /// The object that a `with` statement hands out.
    pub fn object(&mut self, py: Python<'_>) -> PyResult<Py<PyScope>> {
        let buffer = self.buffer.bind(py);
        let opening = Arc::<Opening>::default();
        let allocator = PyAllocator::of_scope(buffer.get().buffer().clone(), opening.clone());
        let capsule = capsules::named(py, buffer.as_super().get())?;
        let _ = allocator.capsule().set(py, capsule.clone().unbind());
        let object = PyScope { opening: opening.clone(), buffer: self.buffer.clone_ref(py) };
        let object = Py::new(py, PyClassInitializer::from(allocator).add_subclass(object))?;
        opening.open();
        self.object = Some(opening);
        Ok(object)
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
        self.seat.opening.is_own()
    }

    /// Whether it is the scope of this capsule.
    pub fn has(&self, capsule: &Bound<'_, PyAny>) -> bool {
        self.seat.capsule.is(capsule)
    }

    /// Ends the scope, and lets the nearest open one serve, or who served before them all. Where somebody else serves by
    /// now, or this is another context, nothing changes.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.seat.opening.close();
        if let Some(object) = &self.object {
            object.close();
        }
        let numpy = NumPy::get(py)?;
        // As a rule this scope serves here, and NumPy's default served before.
        let there = if self.seat.is_plain {
            let there = numpy.set_current(&numpy.default_capsule(py))?;
            if there.is(&self.seat.capsule) {
                return Ok(());
            }
            there
        } else {
            numpy.current(py)?
        };
        let next = nearest_open(there.clone())?;
        if self.seat.is_plain || !next.is(&there) {
            numpy.set_current(&next)?;
        }
        Ok(())
    }

    /// Keeps what was made for it, for the next scope on its buffer.
    pub fn keep(self, py: Python<'_>) -> PyResult<()> {
        self.buffer.bind(py).get().ended_scopes.put(py, self.seat)
    }
}
