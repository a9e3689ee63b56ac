//! Buffers as Python objects: an allocator whose memory scopes share. One kind grows; the other stands on memory of the pool, or
//! on writable memory that another object lends.

#![allow(unsafe_code)] // Safety: storage is kept by who holds it until the buffer and its arrays are gone.

use crate::allocators::allocator::{PyAllocator, process_pool, register_owner};
use crate::allocators::factories::{self, bytes};
use crate::numba::cursor::Cursor;
use crate::python::gil::Name;
use crate::python::values::{PyMemoryError, PyTypeError, PyValueError, ensure_memory};
use firsttouch::allocator::Allocator;
use firsttouch::layout::DEFAULT_ALIGN;
use firsttouch::os;
use firsttouch::owners;
use firsttouch::scratch::{Arena, Buffer};
use firsttouch::sync::lock::Lock;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions;
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyString};
use std::any::Any;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// Scratch memory: the base class of all buffers.
///
/// Scopes take their memory from a buffer, and so do its own constructors, outside all scopes. Several threads may use one,
/// but in turn: give each its own where that matters.
///
/// See Also
/// --------
/// ScratchBuffer : A buffer that grows.
/// FixedBuffer : A buffer of one size.
/// firsttouch.scratch : Opens a scope on a buffer.
#[pyclass(name = "Buffer", module = "firsttouch", extends = PyAllocator, subclass, frozen, weakref)]
pub struct PyBuffer {
    buffer: Arc<Buffer>,
    /// Of calls of compiled code that are over, for the next ones.
    #[allow(clippy::vec_box)] // a call takes the box as it is
    pub cursors: Lock<Vec<Box<Cursor>>>,
}

impl PyBuffer {
    fn new(buffer: Arc<Buffer>) -> PyClassInitializer<Self> {
        let (allocator, cursors): (Arc<dyn Allocator>, _) = (buffer.clone(), Lock::new(Vec::new()));
        register_owner(&allocator);
        PyClassInitializer::from(PyAllocator::ours(allocator)).add_subclass(Self { buffer, cursors })
    }

    /// The buffer in Rust.
    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.buffer
    }
}

#[pymethods]
impl PyBuffer {
    /// Bytes of live blocks in the buffer's own memory.
    #[getter]
    fn used(&self) -> usize {
        self.buffer.used()
    }

    /// Bytes of the buffer's own memory, in use or not.
    #[getter]
    fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Peak of `used` since the buffer was made or reset.
    #[getter]
    fn peak(&self) -> usize {
        self.buffer.peak()
    }

    /// Release all memory that no live array needs, and forget the peak.
    fn reset(&self) {
        self.buffer.reset();
    }

    fn __repr__(&self) -> String {
        self.buffer.expression()
    }
}

/// Scratch memory that grows by chunks.
///
/// Parameters
/// ----------
/// chunk_size : int or str, optional
///     Bytes per chunk. Requests of an eighth of it or more go to `upstream`.
/// upstream : AllocatorLike, optional
///     Where chunks come from. The default is the process's own pool.
///
/// Raises
/// ------
/// TypeError, ValueError
///     If an argument is not one of the above.
///
/// See Also
/// --------
/// FixedBuffer : A buffer that does not grow.
/// scratch : Open a scope on a buffer.
///
/// Notes
/// -----
/// Allocating bumps a pointer. A chunk whose arrays are all gone starts again; one with arrays that outlive their scope is
/// theirs until they are gone, too.
///
/// Examples
/// --------
/// >>> buffer = ft.ScratchBuffer("1 MiB", upstream=ft.limited(ft.pool(), "64 MiB"))
/// >>> with ft.scratch(buffer) as s:
/// ...     a = s.zeros(1000)
/// >>> buffer.used
/// 8000
/// >>> del a
/// >>> buffer.used
/// 0
#[pyclass(module = "firsttouch", extends = PyBuffer, frozen, weakref)]
pub struct ScratchBuffer;

/// The default buffer of a thread or a task.
pub fn default_growing(py: Python<'_>) -> PyResult<Py<PyBuffer>> {
    let made = Py::new(py, growing(py, process_pool().clone(), Buffer::CHUNK)?)?;
    Ok(made.into_bound(py).into_super().unbind())
}

fn growing(
    py: Python<'_>,
    upstream: Arc<dyn Allocator>,
    chunk_size: usize,
) -> PyResult<PyClassInitializer<ScratchBuffer>> {
    ensure_memory(py)?;
    Ok(PyBuffer::new(Buffer::growing(upstream, chunk_size)).add_subclass(ScratchBuffer))
}

#[pymethods]
impl ScratchBuffer {
    #[new]
    #[pyo3(signature = (chunk_size=None, upstream=None))]
    #[pyo3(text_signature = "(chunk_size='128 KiB', upstream=None)")]
    fn new(
        py: Python<'_>,
        chunk_size: Option<&Bound<'_, PyAny>>,
        upstream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let size = chunk_size.map_or(Ok(Buffer::CHUNK), |given| bytes("chunk_size", given))?;
        if !(1..=Buffer::LARGEST_CHUNK).contains(&size) {
            return Err(PyValueError::new_err(format!(
                "invalid chunk size {size}: it must be from 1 to {} bytes (128 GiB)",
                Buffer::LARGEST_CHUNK
            )));
        }
        let upstream = match upstream {
            None => process_pool().clone(),
            Some(given) => factories::upstream(given, "ScratchBuffer()")?,
        };
        growing(py, upstream, size)
    }
}

/// Bytes of a fixed buffer, where none are given.
const DEFAULT: usize = 1 << 20;

/// Scratch memory of one size; what does not fit raises :exc:`MemoryError`.
///
/// Parameters
/// ----------
/// nbytes_or_array : int, str or buffer, optional
///     Size in bytes, or contiguous writable memory to use: an array, a memory map, shared memory. It is kept alive
///     until the last array on it is gone.
///
/// Raises
/// ------
/// TypeError, ValueError
///     If an argument is not one of the above, or the memory is used by another buffer.
///
/// See Also
/// --------
/// ScratchBuffer : A buffer that grows.
///
/// Notes
/// -----
/// Its memory is bounded whatever the program does. In a forked child, a buffer on shared memory is closed.
///
/// Examples
/// --------
/// >>> buffer = ft.FixedBuffer(np.empty(4096, "u1"))
/// >>> with ft.scratch(buffer) as s:
/// ...     try:
/// ...         s.zeros(1000)
/// ...     except MemoryError as error:
/// ...         print(error)
/// Unable to allocate 7.81 KiB ...
#[pyclass(module = "firsttouch", extends = PyBuffer, frozen, weakref)]
pub struct FixedBuffer;

/// Memory, and what keeps it.
struct Storage {
    start: NonNull<u8>,
    size: usize,
    keep: Box<dyn Any + Send>,
}

/// Whether it is memory: arrays have `__index__`, too, but numbers no length. The names exist already (memory may be out).
pub fn lends(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    static NAMES: [Name; 2] = [Name::new("__len__"), Name::new("__index__")];
    let [has_length, is_number] = NAMES.each_ref().map(|name| given.hasattr(name.get(given.py())));
    Ok(!given.is_instance_of::<PyString>() && (has_length? || !is_number?))
}

fn storage(given: Option<&Bound<'_, PyAny>>) -> PyResult<Storage> {
    let size = match given {
        None => DEFAULT,
        Some(lender) if lends(lender)? => return lent(lender),
        Some(given) => bytes("nbytes_or_array", given)?,
    };
    if size == 0 {
        return Err(PyValueError::new_err("FixedBuffer(0) has no room: give a number of bytes, or \"1 MiB\""));
    }
    let arena = Arena::with(process_pool().clone(), size);
    let block = arena.alloc_aligned::<u8>(size, DEFAULT_ALIGN).map(|block| NonNull::from_mut(block).cast());
    let start = block.map_err(|error| PyMemoryError::new_err(error.to_string()))?;
    Ok(Storage { start, size, keep: Box::new(arena) })
}

/// The memory of an array, a memory map, shared memory, a bytearray.
fn lent(lender: &Bound<'_, PyAny>) -> PyResult<Storage> {
    let kind = lender.get_type().name()?.to_string();
    let view = match PyMemoryView::from(lender).and_then(|view| PyUntypedBuffer::get(&view)) {
        Err(error) if error.is_instance_of::<exceptions::PyTypeError>(lender.py()) => {
            return Err(PyTypeError::new_err(format!(
                "FixedBuffer() takes a number of bytes, text like \"1 MiB\", or writable memory (an array, a memory map, \
                 shared memory), not {kind}"
            )));
        }
        view => view?,
    };
    // Of a structure, the names of fields stand between colons.
    let mut types = view.format().to_bytes().split(|&byte| byte == b':').step_by(2);
    let start = NonNull::new(view.buf_ptr().cast());
    // A block of ours at the address of one whose memory is lent as well could be taken for that one.
    let skipped = if start.is_some_and(owners::is_lent) { 64 } else { 0 };
    let size = view.len_bytes().saturating_sub(skipped);
    let refused = if view.readonly() {
        "is read-only: its storage has to be writable"
    } else if types.any(|types| types.contains(&b'O')) {
        "is of objects, whose references would be lost: give it one of numbers or bytes"
    } else if !view.is_c_contiguous() && !view.is_fortran_contiguous() {
        "is not contiguous: its storage has to lie in one piece, without steps"
    } else if let Some(start) = start.filter(|_| size > 0) {
        // SAFETY: it lies within the memory, as `size` is not zero.
        return Ok(Storage { start: unsafe { start.add(skipped) }, size, keep: Box::new(view) });
    } else {
        "has no bytes"
    };
    Err(PyValueError::new_err(format!("FixedBuffer() got memory that {refused} ({kind})")))
}

/// Fixed buffers that live, and their memory.
static FIXED: Lock<Vec<(Range<usize>, Weak<Buffer>)>> = Lock::new(Vec::new());

/// Registers the memory that a buffer stands on: two on the same memory would hand it out twice.
fn register(range: Range<usize>, buffer: &Arc<Buffer>) -> PyResult<()> {
    owners::sweep(); // of a buffer for whose object there was no memory, only the registry is left
    let mut fixed = FIXED.lock();
    fixed.retain(|(_, other)| other.strong_count() > 0);
    if !fixed.iter().any(|(other, _)| other.start < range.end && range.start < other.end) {
        fixed.push((range, Arc::downgrade(buffer)));
        return Ok(());
    }
    drop(fixed);
    Err(PyValueError::new_err(format!(
        "FixedBuffer() got {} bytes at {:#x}, which overlap the memory of another FixedBuffer that is in use: both would \
         hand out the same bytes; use that buffer, or drop it and its arrays first",
        range.len(),
        range.start
    )))
}

#[pymethods]
impl FixedBuffer {
    #[new]
    #[pyo3(signature = (nbytes_or_array=None))]
    #[pyo3(text_signature = "(nbytes_or_array='1 MiB')")]
    fn new(py: Python<'_>, nbytes_or_array: Option<&Bound<'_, PyAny>>) -> PyResult<PyClassInitializer<Self>> {
        ensure_memory(py)?;
        let Storage { start, size, keep } = storage(nbytes_or_array)?;
        let address = start.addr().get();
        // SAFETY: the memory is writable, `keep` keeps it, and nobody else is expected to use it meanwhile.
        let buffer = unsafe { Buffer::fixed(start, size, os::is_shared(address), keep) };
        register(address..address + size, &buffer)?;
        Ok(PyBuffer::new(buffer).add_subclass(Self))
    }
}
