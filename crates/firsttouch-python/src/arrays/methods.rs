//! What Python sees of an allocator. Its other constructors are attached by the package.

use crate::allocators::allocator::PyAllocator;
use crate::arrays::creation::{Arguments, make};
use crate::python::values::ToPython;
use pyo3::prelude::*;

#[pymethods]
impl PyAllocator {
    fn __repr__(&self) -> ToPython<String> {
        ToPython(self.expression())
    }

    fn __eq__(&self, other: &Self) -> bool {
        self == other
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.key().hash(&mut hasher);
        hasher.finish()
    }

    /// `numpy.empty` with this allocator's memory.
    #[pyo3(signature = (shape, dtype=None, order=None, *, device=None, like=None))]
    #[pyo3(text_signature = "($self, shape, dtype=None, order='C', *, device=None, like=None)")]
    fn empty<'py>(
        slf: &Bound<'py, Self>,
        shape: &Bound<'py, PyAny>,
        dtype: Option<&Bound<'py, PyAny>>,
        order: Option<&Bound<'py, PyAny>>,
        device: Option<&Bound<'py, PyAny>>,
        like: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        make(slf.py(), &Arguments { shape, dtype, order, device, like, allocator: Some(slf.as_any()) }, false)
    }

    /// `numpy.zeros` with this allocator's memory.
    #[pyo3(signature = (shape, dtype=None, order=None, *, device=None, like=None))]
    #[pyo3(text_signature = "($self, shape, dtype=None, order='C', *, device=None, like=None)")]
    fn zeros<'py>(
        slf: &Bound<'py, Self>,
        shape: &Bound<'py, PyAny>,
        dtype: Option<&Bound<'py, PyAny>>,
        order: Option<&Bound<'py, PyAny>>,
        device: Option<&Bound<'py, PyAny>>,
        like: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        make(slf.py(), &Arguments { shape, dtype, order, device, like, allocator: Some(slf.as_any()) }, true)
    }
}
