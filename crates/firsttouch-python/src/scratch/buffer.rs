//! Buffers as Python objects: an allocator whose memory scopes share. One kind grows, the other has a fixed size.

use crate::allocators::allocator::{PyAllocator, process_pool, register_owner};
use crate::allocators::factories::{self, bytes};
use crate::numba::cursor::Cursor;
use crate::python::values::{PyMemoryError, PyValueError, ensure_memory};
use crate::scratch::storage::{self, Storage};
use firsttouch::allocator::Allocator;
use firsttouch::scratch::{Buffer, BufferOptions};
use firsttouch::sync::lock::Lock;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::Arc;

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
    let made = Py::new(py, growing(py, process_pool().clone(), BufferOptions::default())?)?;
    Ok(made.into_bound(py).into_super().unbind())
}

fn growing(
    py: Python<'_>,
    upstream: Arc<dyn Allocator>,
    options: BufferOptions,
) -> PyResult<PyClassInitializer<ScratchBuffer>> {
    ensure_memory(py)?;
    let buffer = Buffer::growing(upstream, options).map_err(|bad| PyValueError::new_err(bad.to_string()))?;
    Ok(PyBuffer::new(buffer).add_subclass(ScratchBuffer))
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
        let mut options = BufferOptions::default();
        if let Some(given) = chunk_size {
            options.chunk_size = bytes("chunk_size", given)?;
        }
        let upstream = match upstream {
            None => process_pool().clone(),
            Some(given) => factories::upstream(given, "ScratchBuffer()")?,
        };
        growing(py, upstream, options)
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

fn storage(given: Option<&Bound<'_, PyAny>>) -> PyResult<Storage> {
    let has = |given: &Bound<'_, PyAny>, name| given.hasattr(name).unwrap_or(false);
    let size = match given {
        None => DEFAULT,
        // Arrays have __index__, too, but numbers no length.
        Some(lender)
            if !lender.is_instance_of::<PyString>() && (has(lender, "__len__") || !has(lender, "__index__")) =>
        {
            return storage::lent(lender);
        }
        Some(given) => bytes("nbytes_or_array", given)?,
    };
    if size == 0 {
        return Err(PyValueError::new_err("FixedBuffer(0) has no room: give a number of bytes, or \"1 MiB\""));
    }
    storage::of_pool(process_pool().clone(), size).map_err(|error| PyMemoryError::new_err(error.to_string()))
}

#[pymethods]
impl FixedBuffer {
    #[new]
    #[pyo3(signature = (nbytes_or_array=None))]
    #[pyo3(text_signature = "(nbytes_or_array='1 MiB')")]
    fn new(py: Python<'_>, nbytes_or_array: Option<&Bound<'_, PyAny>>) -> PyResult<PyClassInitializer<Self>> {
        ensure_memory(py)?;
        let Storage { address, size, shared, keep } = storage(nbytes_or_array)?;
        // SAFETY: the memory is writable, `keep` keeps it, and nobody else is expected to use it meanwhile.
        #[allow(unsafe_code)]
        let buffer = unsafe { Buffer::fixed(address, size, shared, keep) };
        storage::note(address.addr().get()..address.addr().get() + size, &buffer)?;
        Ok(PyBuffer::new(buffer).add_subclass(Self))
    }
}
