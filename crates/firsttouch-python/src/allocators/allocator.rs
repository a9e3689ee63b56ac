//! Allocators as Python objects.

use crate::python::errors::{PyRuntimeError, PyTypeError};
use firsttouch::allocator::Allocator;
use firsttouch::allocator::{downcast, find};
use firsttouch::numa::policy::Policy;
use firsttouch::owners;
use firsttouch::scratch::Scope;
use firsttouch::sources::PlacedPages;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::sync::Arc;

/// Who allocates.
enum Maker {
    Ours(Arc<dyn Allocator>),
    NumPy,
    Foreign(String),
}

/// A source of memory for arrays, with NumPy's constructors as methods; ``repr`` is the expression that makes it.
///
/// An allocator may be used from any thread. Two are equal if they allocate from the same memory.
///
/// See Also
/// --------
/// firsttouch.allocators : The functions that make allocators.
/// firsttouch.use : Use one for a block of code.
/// firsttouch.install : Use one for the whole process.
#[pyclass(name = "Allocator", module = "firsttouch", subclass, frozen, weakref)]
pub struct PyAllocator {
    maker: Maker,
    /// The capsule of its handler, for constructors that name it.
    capsule: PyOnceLock<Py<PyAny>>,
    slabs: bool,
}

impl PyAllocator {
    fn new(maker: Maker) -> Self {
        Self { maker, capsule: PyOnceLock::new(), slabs: false }
    }

    pub fn ours(allocator: Arc<dyn Allocator>) -> Self {
        let slabs = has_slabs(&allocator);
        Self { maker: Maker::Ours(allocator), capsule: PyOnceLock::new(), slabs }
    }

    pub fn numpy() -> Self {
        Self::new(Maker::NumPy)
    }

    pub fn foreign(name: String) -> Self {
        Self::new(Maker::Foreign(name))
    }

    /// Whether it stands for another library's memory handler.
    pub fn is_foreign(&self) -> bool {
        matches!(self.maker, Maker::Foreign(_))
    }

    pub fn capsule(&self) -> &PyOnceLock<Py<PyAny>> {
        &self.capsule
    }

    /// Whether its arrays are placed in slabs along an axis, so that it has to know their shape.
    pub fn has_slabs(&self) -> bool {
        self.slabs
    }

    /// The allocator in Rust, if it is one of ours.
    pub fn native(&self) -> Option<&Arc<dyn Allocator>> {
        match &self.maker {
            Maker::Ours(allocator) => Some(allocator),
            _ => None,
        }
    }

    pub fn expression(&self) -> String {
        match &self.maker {
            Maker::Ours(allocator) => allocator.expression(),
            Maker::NumPy => "numpy_default()".into(),
            Maker::Foreign(name) => format!("<the memory handler {name:?} of another library>"),
        }
    }

    /// The allocator in Rust. If NumPy or another library allocates, fails with an error that names `caller`, like
    /// `pool()`.
    pub fn require_native(&self, caller: &str) -> PyResult<Arc<dyn Allocator>> {
        self.native().cloned().ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{caller} cannot use {}: it takes one of firsttouch's allocators, like pool() or malloc()",
                self.expression()
            ))
        })
    }

    /// An error for a scope that has ended, or that belongs to another thread or process.
    pub fn ensure_open(&self) -> PyResult<()> {
        match self.native().and_then(downcast::<Scope>) {
            Some(scope) if !scope.serves() => Err(PyRuntimeError::new_err(if scope.is_open() {
                "this scope belongs to another thread or process: open one there, with firsttouch.scratch()"
            } else {
                "this scope has ended: its arrays stay valid, but new ones need an open scope, as `with \
                 firsttouch.scratch() as s:` gives"
            })),
            _ => Ok(()),
        }
    }

    /// Identifies the allocator, for comparison and hashing.
    pub fn key(&self) -> (usize, &str) {
        match &self.maker {
            Maker::Ours(allocator) => (Arc::as_ptr(allocator).cast::<()>() as usize, ""),
            Maker::NumPy => (1, ""),
            Maker::Foreign(name) => (2, name),
        }
    }
}

/// Whether the placed pages at the bottom of an allocator are placed in slabs.
pub fn has_slabs(allocator: &Arc<dyn Allocator>) -> bool {
    find::<PlacedPages>(allocator).is_some_and(|pages| matches!(pages.placement().policy, Some(Policy::Blocked(_))))
}

impl Drop for PyAllocator {
    fn drop(&mut self) {
        drop(std::mem::replace(&mut self.maker, Maker::NumPy)); // first: it may be the last to hold it
        owners::sweep();
    }
}

impl PartialEq for PyAllocator {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
