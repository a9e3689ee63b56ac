//! Allocators as Python objects.

use crate::stacks::find;
use firsttouch::allocator::Allocator;
use firsttouch::numa::policy::Policy;
use firsttouch::owners;
use firsttouch::sources::PlacedPages;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::sync::Arc;

enum Which {
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
    which: Which,
    /// The capsule of the handler that our constructors use.
    direct: PyOnceLock<Py<PyAny>>,
    slabs: bool,
}

impl PyAllocator {
    fn new(which: Which) -> Self {
        Self { which, direct: PyOnceLock::new(), slabs: false }
    }

    pub fn ours(allocator: Arc<dyn Allocator>) -> Self {
        let slabs = has_slabs(&allocator);
        Self { which: Which::Ours(allocator), direct: PyOnceLock::new(), slabs }
    }

    pub fn numpy() -> Self {
        Self::new(Which::NumPy)
    }

    pub fn foreign(name: String) -> Self {
        Self::new(Which::Foreign(name))
    }

    /// Whether it stands for another library's memory handler.
    pub fn is_foreign(&self) -> bool {
        matches!(self.which, Which::Foreign(_))
    }

    pub fn direct(&self) -> &PyOnceLock<Py<PyAny>> {
        &self.direct
    }

    /// Whether its arrays are to lie in slabs along an axis: it has to know their shape.
    pub fn has_slabs(&self) -> bool {
        self.slabs
    }

    /// The allocator in Rust, if it is one of ours.
    pub fn native(&self) -> Option<&Arc<dyn Allocator>> {
        match &self.which {
            Which::Ours(allocator) => Some(allocator),
            _ => None,
        }
    }

    pub fn expression(&self) -> String {
        match &self.which {
            Which::Ours(allocator) => allocator.expression(),
            Which::NumPy => "numpy_default()".into(),
            Which::Foreign(name) => format!("<the memory handler {name:?} of another library>"),
        }
    }

    /// What tells it from others.
    pub fn key(&self) -> (usize, &str) {
        match &self.which {
            Which::Ours(allocator) => (Arc::as_ptr(allocator).cast::<()>() as usize, ""),
            Which::NumPy => (1, ""),
            Which::Foreign(name) => (2, name),
        }
    }
}

/// Whether placed pages at the bottom of an allocator are to lie in slabs.
pub fn has_slabs(allocator: &Arc<dyn Allocator>) -> bool {
    find::<PlacedPages>(allocator).is_some_and(|pages| matches!(pages.placement().policy, Some(Policy::Blocked(_))))
}

impl Drop for PyAllocator {
    fn drop(&mut self) {
        drop(std::mem::replace(&mut self.which, Which::NumPy)); // first: it may be the last to hold it
        owners::sweep();
    }
}

impl PartialEq for PyAllocator {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
