//! The two kinds of buffers: one that grows, and one that does not.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::factories::bytes;
use crate::allocators::process_pool::process_pool;
use crate::python::call_sites;
use crate::python::callbacks::callback;
use crate::python::errors::{PyMemoryError, PyValueError};
use crate::python::global_allocator::ensure_memory;
use crate::python::values::{Name, ToPython};
use crate::scratch::buffer::PyBuffer;
use crate::scratch::storage::{self, Storage};
use firsttouch::allocator::Allocator;
use firsttouch::allocator::find;
use firsttouch::numa::policy::Policy;
use firsttouch::scratch::{Buffer, Options};
use firsttouch::sources::PlacedPages;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::Arc;

/// Bytes of a chunk, and of a fixed buffer, where none are given.
const DEFAULT: usize = 1 << 20;

fn options(chunk_size: usize, limit: Option<usize>, debug: bool) -> Options {
    let site: Option<fn() -> u64> = if debug { Some(call_sites::site) } else { None };
    Options { chunk_size, limit, debug, site }
}

/// What a buffer stands on, by the words of Python's part: `function` of its module takes what was given, and `numa=`.
fn chosen(
    buffer: &str,
    function: &'static str,
    given: Option<&Bound<'_, PyAny>>,
    numa: Option<&Bound<'_, PyAny>>,
) -> PyResult<Arc<dyn Allocator>> {
    let Some(any) = given.or(numa) else { return Ok(process_pool().clone()) };
    let found = callback(any.py(), function)?.call1((given, numa))?;
    found.cast::<PyAllocator>()?.get().require_native(&format!("{buffer}()"))
}

/// Scratch memory that grows by chunks.
///
/// Parameters
/// ----------
/// chunk_size : int or str, optional
///     Bytes per chunk. Requests above an eighth of it get memory of their own from `upstream`.
/// upstream : AllocatorLike, optional
///     Where chunks come from. The default is the process's own pool.
/// limit : int or str, optional
///     Bytes that the buffer may hold. The default is no limit.
/// debug : bool, optional
///     Whether freed memory is filled with a pattern and checked for writes, and the line that made each array is
///     recorded.
/// numa : int or str, optional
///     Instead of an upstream: a pool on a node or by a policy, as for :func:`firsttouch.pool`.
///
/// Raises
/// ------
/// TypeError, ValueError
///     If an argument is not one of the above, or both `upstream` and `numa` are given.
///
/// See Also
/// --------
/// FixedBuffer : A buffer that does not grow.
/// scratch : Open a scope on a buffer.
///
/// Notes
/// -----
/// Allocating bumps a pointer. Arrays that outlive their scope stay where they are, and the buffer works around them.
#[pyclass(module = "firsttouch", extends = PyBuffer, frozen, weakref)]
pub struct ScratchBuffer;

/// The default buffer of a thread or a task.
pub fn default(py: Python<'_>, debug: bool) -> PyResult<Py<PyBuffer>> {
    let made = Py::new(py, growing(py, process_pool().clone(), options(DEFAULT, None, debug))?)?;
    Ok(made.into_bound(py).into_super().unbind())
}

fn growing(
    py: Python<'_>,
    upstream: Arc<dyn Allocator>,
    options: Options,
) -> PyResult<PyClassInitializer<ScratchBuffer>> {
    ensure_memory(py)?;
    let debug = options.debug;
    let buffer = Buffer::growing(upstream, options).map_err(|bad| PyValueError::new_err(bad.to_string()))?;
    Ok(PyBuffer::new(buffer, debug).add_subclass(ScratchBuffer))
}

#[pymethods]
impl ScratchBuffer {
    #[new]
    #[pyo3(signature = (chunk_size=None, upstream=None, limit=None, debug=false, *, numa=None))]
    #[pyo3(text_signature = "(chunk_size='1 MiB', upstream=None, limit=None, debug=False, *, numa=None)")]
    fn new(
        py: Python<'_>,
        chunk_size: Option<&Bound<'_, PyAny>>,
        upstream: Option<&Bound<'_, PyAny>>,
        limit: Option<&Bound<'_, PyAny>>,
        debug: bool,
        numa: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let chunk_size = chunk_size.map_or(Ok(DEFAULT), |given| bytes("chunk_size", given))?;
        let limit = limit.map(|given| bytes("limit", given)).transpose()?;
        growing(py, chosen("ScratchBuffer", "buffer_upstream", upstream, numa)?, options(chunk_size, limit, debug))
    }
}

/// Scratch memory of one size; what does not fit raises :exc:`MemoryError`.
///
/// Parameters
/// ----------
/// nbytes_or_array : int, str or buffer, optional
///     Size in bytes, or contiguous writable memory to use: an array, a memory map, shared memory. It is kept alive
///     until the last array on it is gone.
/// debug : bool, optional
///     As for :class:`ScratchBuffer`.
/// numa : int or str, optional
///     Where memory that is not given comes from, as for :func:`firsttouch.pool`.
///
/// Raises
/// ------
/// TypeError, ValueError
///     If an argument is not one of the above, the memory is used by another buffer, or both memory and `numa` are
///     given.
///
/// See Also
/// --------
/// ScratchBuffer : A buffer that grows.
///
/// Notes
/// -----
/// Its memory is bounded whatever the program does. In a forked child, a buffer on shared memory is closed.
#[pyclass(module = "firsttouch", extends = PyBuffer, frozen, weakref)]
pub struct FixedBuffer {
    policy: Option<Policy>,
}

fn storage(pool: Arc<dyn Allocator>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Storage> {
    let has = |given: &Bound<'_, PyAny>, name| given.hasattr(Name(name)).unwrap_or(false);
    // Arrays have __index__, too, but numbers no length.
    let is_size = |given: &Bound<'_, PyAny>| {
        given.is_instance_of::<PyString>() || has(given, "__index__") && !has(given, "__len__")
    };
    let size = match given {
        None => DEFAULT,
        Some(given) if is_size(given) => bytes("nbytes_or_array", given)?,
        Some(lender) => return storage::lent(lender),
    };
    if size == 0 {
        return Err(PyValueError::new_err("FixedBuffer(0) has no room: give a number of bytes, or \"1 MiB\""));
    }
    storage::of_pool(pool, size).map_err(|error| PyMemoryError::new_err(error.to_string()))
}

#[pymethods]
impl FixedBuffer {
    #[new]
    #[pyo3(signature = (nbytes_or_array=None, debug=false, *, numa=None))]
    #[pyo3(text_signature = "(nbytes_or_array='1 MiB', debug=False, *, numa=None)")]
    fn new(
        py: Python<'_>,
        nbytes_or_array: Option<&Bound<'_, PyAny>>,
        debug: bool,
        numa: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        ensure_memory(py)?;
        let pool = match numa {
            None => process_pool().clone(),
            Some(_) => chosen("FixedBuffer", "storage", nbytes_or_array, numa)?,
        };
        let policy = find::<PlacedPages>(&pool).and_then(|pages| pages.placement().policy);
        let Storage { address, size, shared, keep } = storage(pool, nbytes_or_array)?;
        // SAFETY: the memory is writable, `keep` keeps it, and nobody else is expected to use it meanwhile.
        #[allow(unsafe_code)]
        let buffer = unsafe { Buffer::fixed(address, size, shared, debug, options(DEFAULT, None, debug).site, keep) };
        Ok(PyBuffer::new(buffer, debug).add_subclass(Self { policy }))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> ToPython<String> {
        let buffer = slf.as_super().get().backing().describe();
        ToPython(match slf.get().policy {
            None => buffer.to_string(),
            Some(policy) => buffer.named("numa", policy.to_string()).to_string(),
        })
    }
}
