//! The base class of buffers: an allocator whose memory scopes share.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::process_pool::process_pool;
use crate::custom::raise_scope_error;
use crate::python::errors::{PyRuntimeError, PyTypeError, PyValueError};
use crate::python::guarded::Guarded;
use crate::python::values::ToPython;
use crate::scratch::diagnostics;
use crate::scratch::raw_memory::raw;
use crate::scratch::scope::ScopeCache;
use crate::scratch::thread_or_task::ThreadOrTask;
use firsttouch::scratch::{Backing, Scope, Slot};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The open scopes of an explicit buffer, and the thread or task that opened them.
#[derive(Default)]
struct BufferUse {
    depth: usize,
    who: Option<ThreadOrTask>,
}

/// A position in a buffer, to be rewound to.
///
/// See Also
/// --------
/// Buffer.mark : Returns it.
/// Buffer.rewind : Takes it.
#[pyclass(module = "firsttouch", frozen)]
pub struct Mark {
    buffer: usize,
    number: u64,
}

#[pymethods]
impl Mark {
    fn __repr__(&self) -> ToPython<String> {
        ToPython(format!("<mark {} of the buffer at {:#x}>", self.number, self.buffer))
    }
}

/// The number of the last mark of any buffer: one of a buffer that is gone is no other's.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Scratch memory: the base class of all buffers.
///
/// Scopes take their memory from a buffer, and so do its own constructors, outside all scopes. A buffer is for one
/// thread or asyncio task at a time.
///
/// See Also
/// --------
/// ScratchBuffer : A buffer that grows.
/// FixedBuffer : A buffer of one size.
/// firsttouch.scratch : Opens a scope on a buffer.
#[pyclass(name = "Buffer", module = "firsttouch", extends = PyAllocator, subclass, frozen, weakref)]
pub struct PyBuffer {
    backing: Arc<dyn Backing>,
    turn: Guarded<BufferUse>,
    /// The marks that were taken and not rewound.
    marks: Guarded<Vec<(u64, Slot)>>,
    /// What calls from compiled code need; made by them.
    pub jit: PyOnceLock<Py<PyAny>>,
    pub ended_scopes: ScopeCache,
    pub debug: bool,
}

impl PyBuffer {
    /// A buffer in front of `backing`.
    pub fn new(backing: Arc<dyn Backing>, debug: bool) -> PyClassInitializer<Self> {
        let outside = Scope::outside(backing.clone(), process_pool().clone());
        PyClassInitializer::from(PyAllocator::ours(outside)).add_subclass(Self {
            backing,
            turn: Guarded::default(),
            marks: Guarded::default(),
            jit: PyOnceLock::new(),
            ended_scopes: ScopeCache::default(),
            debug,
        })
    }

    /// Where its memory comes from.
    pub fn backing(&self) -> &Arc<dyn Backing> {
        &self.backing
    }

    /// One thread or task at a time has scopes on it; another gets an error that names both.
    pub fn take_turn(&self, py: Python<'_>) -> PyResult<()> {
        let now = ThreadOrTask::now(py)?;
        let other = {
            let mut turn = self.turn.lock(py);
            match turn.who.take_if(|who| *who != now) {
                Some(who) if who.is_here() => turn.who.insert(who).clone_ref(py),
                gone => {
                    // Of a forked child's parent: nobody will end its scopes here.
                    turn.depth = if gone.is_some() { 1 } else { turn.depth + 1 };
                    let before = turn.who.replace(now);
                    drop(turn);
                    drop((gone, before)); // a task's end may run code of its own
                    return Ok(());
                }
            }
        };
        Err(PyRuntimeError::new_err(format!(
            "{} is in use by {}, so {} cannot enter it: give each a buffer of its own, or none (scratch() without one \
             takes that of the thread or task)",
            self.backing.expression(),
            other.name(py)?,
            now.name(py)?
        )))
    }

    /// Ends the innermost use.
    pub fn end_turn(&self, py: Python<'_>) {
        let who = {
            let mut turn = self.turn.lock(py);
            turn.depth = turn.depth.saturating_sub(1);
            if turn.depth == 0 { turn.who.take() } else { None }
        };
        drop(who); // a task's end may run code of its own
    }
}

#[pymethods]
impl PyBuffer {
    /// Bytes of live blocks.
    #[getter]
    fn used(&self) -> ToPython<usize> {
        ToPython(self.backing.used())
    }

    /// Bytes that the buffer holds, in use or not.
    #[getter]
    fn capacity(&self) -> ToPython<usize> {
        ToPython(self.backing.capacity())
    }

    /// Peak of `used` since the buffer was made or reset.
    #[getter]
    fn peak(&self) -> ToPython<usize> {
        ToPython(self.backing.peak())
    }

    /// Release all memory that no live array needs, and forget the peak.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     If scopes are open, or marks were not rewound.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.backing.reset().map_err(|open| {
            let scopes = if open == 1 { "a scope is".to_owned() } else { format!("{open} scopes are") };
            let marks = self.marks.lock(py).len();
            let of_marks = if marks == 0 { String::new() } else { format!(" ({marks} by mark(), without a rewind())") };
            PyRuntimeError::new_err(format!(
                "reset() of {}: {scopes} open on it{of_marks}; leave first",
                self.backing.expression()
            ))
        })?;
        diagnostics::damage(py, self.backing.damage())
    }

    /// Return the current position; what the buffer's constructors make from here on lies above it.
    ///
    /// Returns
    /// -------
    /// firsttouch.buffers.Mark
    fn mark(slf: &Bound<'_, Self>) -> PyResult<Mark> {
        let this = slf.get();
        let slot = this.backing.open(); // custom scratch memory runs code of its own
        raise_scope_error().inspect_err(|_| {
            this.backing.close(slot);
        })?;
        let number = LAST.fetch_add(1, Relaxed) + 1;
        this.marks.lock(slf.py()).push((number, slot));
        Ok(Mark { buffer: slf.as_ptr() as usize, number })
    }

    /// Rewind to an earlier position, so that the memory of dead arrays above it is used again.
    ///
    /// Parameters
    /// ----------
    /// mark : Mark
    ///     What :meth:`mark` returned.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If `mark` is of another buffer, or has been rewound already.
    ///
    /// Notes
    /// -----
    /// Arrays that are alive stay valid.
    fn rewind(slf: &Bound<'_, Self>, mark: &Bound<'_, PyAny>) -> PyResult<()> {
        let this = slf.get();
        let mark = mark.cast::<Mark>().map(Bound::get).map_err(|_| {
            let kind = mark.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
            PyTypeError::new_err(format!("rewind() takes a Mark, as mark() of this buffer returns it, not {kind}"))
        })?;
        if mark.buffer != slf.as_ptr() as usize {
            return Err(PyValueError::new_err(format!(
                "rewind() got a mark of another buffer: {} has to be rewound to one that its own mark() returned",
                this.backing.expression()
            )));
        }
        let ended = {
            let mut marks = this.marks.lock(slf.py());
            let at = marks.iter().position(|(number, _)| *number == mark.number).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "rewind() got mark {}, which was rewound before, or lies above one that was: rewind to the newest \
                     first",
                    mark.number
                ))
            })?;
            marks.split_off(at)
        };
        let ended: Vec<_> = ended.into_iter().rev().map(|(_, slot)| this.backing.close(slot)).collect();
        ended.iter().try_for_each(|closed| diagnostics::damage(slf.py(), closed.damage))
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

    fn __repr__(&self) -> ToPython<String> {
        ToPython(self.backing.expression())
    }
}
