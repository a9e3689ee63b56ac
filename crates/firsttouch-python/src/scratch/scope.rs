//! A scope as Python knows it: an allocator for the time of its `with` block.

use super::buffer::PyBuffer;
use super::raw::raw;
use crate::allocator::PyAllocator;
use crate::capsules;
use crate::guarded_by_gil::GuardedByGil;
use crate::memory_out::PyRuntimeError;
use firsttouch::scratch::Scope;
use pyo3::prelude::*;
use std::sync::Arc;

/// Scratch memory for the duration of a block; arrays made in it stay valid for as long as they live.
///
/// See Also
/// --------
/// firsttouch.scratch : Entering it returns a scope.
#[pyclass(name = "Scope", module = "firsttouch", extends = PyAllocator, frozen, weakref)]
pub struct PyScope {
    scope: Arc<Scope>,
    buffer: GuardedByGil<Option<Py<PyBuffer>>>,
}

impl PyScope {
    pub fn new(scope: &Arc<Scope>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(PyAllocator::ours(scope.clone()))
            .add_subclass(Self { scope: scope.clone(), buffer: GuardedByGil::default() })
    }

    /// From now on its memory is this buffer's.
    pub fn belong_to(&self, py: Python<'_>, buffer: Py<PyBuffer>) {
        let old = self.buffer.borrow(py).replace(buffer);
        drop(old);
    }

    /// Whether somebody besides the one who asks knows it or uses what it made.
    pub fn is_known(this: &Bound<'_, Self>) -> bool {
        let direct = this.as_super().get().direct().get(this.py());
        capsules::references(this.as_any()) > 1
            || direct.is_some_and(|capsule| capsules::references(capsule.bind(this.py())) > 1)
    }

    /// How often it refers to its scope.
    pub fn own_count(this: &Bound<'_, Self>) -> usize {
        // As a scope, as an allocator, and by the handler of its constructors.
        2 + usize::from(this.as_super().get().direct().get(this.py()).is_some())
    }

    /// Lets go of the buffer, where nobody else knows the scope or uses what it made; whether that was so.
    pub fn forget(this: &Bound<'_, Self>) -> bool {
        if Self::is_known(this) {
            return false;
        }
        let buffer = this.get().buffer.borrow(this.py()).take();
        drop(buffer);
        true
    }
}

#[pymethods]
impl PyScope {
    /// Buffer that the scope takes memory from.
    #[getter]
    fn buffer(&self, py: Python<'_>) -> PyResult<Py<PyBuffer>> {
        let buffer = self.buffer.borrow(py).as_ref().map(|buffer| buffer.clone_ref(py));
        buffer.ok_or_else(|| PyRuntimeError::new_err("this scope was never entered"))
    }

    /// Whether the block is still running.
    #[getter]
    fn is_open(&self) -> bool {
        self.scope.is_open()
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

    fn __repr__(&self) -> String {
        let state = if self.scope.is_open() { "open" } else { "ended" };
        format!("<{state} scope on {}>", self.scope.backing().expression())
    }
}
