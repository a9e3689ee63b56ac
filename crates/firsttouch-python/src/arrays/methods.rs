//! The methods of an allocator as a Python object: its constructors, its `repr`, equality and hash.

use crate::allocators::allocator::PyAllocator;
use crate::arrays::make::{Arguments, make};
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

    /// Return a new uninitialized array of the given shape and type.
    ///
    /// The memory is this allocator's. Refer to :func:`firsttouch.empty` for full documentation.
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

    /// Return a new array of the given shape and type, filled with zeros.
    ///
    /// The memory is this allocator's. Refer to :func:`firsttouch.zeros` for full documentation.
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
