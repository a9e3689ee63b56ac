//! Allocators as Python objects, and the pool of the process.

use crate::python::values::{PyRuntimeError, PyTypeError};
use crate::scratch::scope::Scope;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::allocator::{Allocator, find};
use firsttouch::owners;
use firsttouch::scratch::Buffer;
use firsttouch::sync::OnceBox;
use pyo3::prelude::*;
use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A source of memory for arrays, with NumPy's constructors as methods; ``repr`` is the expression that makes it.
///
/// An allocator may be used from any thread. Two are equal if they allocate from the same memory.
///
/// See Also
/// --------
/// firsttouch.allocators : The functions that make allocators.
/// firsttouch.use : Use one for a block of code.
/// firsttouch.install : Use one for the whole process.
///
/// Examples
/// --------
/// >>> allocator = ft.pages(huge="thp")
/// >>> allocator
/// pages(huge='thp')
/// >>> a = allocator.full((2, 2), 0.5)
/// >>> ft.get_allocator(a) == allocator
/// True
#[pyclass(name = "Allocator", module = "firsttouch", subclass, frozen, weakref, eq, hash)]
pub struct PyAllocator {
    /// `None` stands for NumPy's own.
    native: Option<Arc<dyn Allocator>>,
    /// The capsule of its handler, once it was used.
    capsule: OnceBox<Py<PyAny>>,
    /// Of the object of a scope: new arrays need it to be open.
    scope: Option<Arc<Scope>>,
}

impl PyAllocator {
    fn new(native: Option<Arc<dyn Allocator>>) -> Self {
        Self { native, capsule: OnceBox::new(), scope: None }
    }

    pub fn ours(allocator: Arc<dyn Allocator>) -> Self {
        Self::new(Some(allocator))
    }

    /// The allocator of a scope on a buffer.
    pub fn of_scope(buffer: Arc<dyn Allocator>, scope: Arc<Scope>) -> Self {
        let mut made = Self::ours(buffer);
        made.scope = Some(scope);
        made
    }

    pub fn numpy() -> Self {
        Self::new(None)
    }

    pub fn capsule(&self) -> &OnceBox<Py<PyAny>> {
        &self.capsule
    }

    /// The allocator in Rust, if it is one of ours.
    pub fn native(&self) -> Option<&Arc<dyn Allocator>> {
        self.native.as_ref()
    }

    pub fn expression(&self) -> String {
        self.native().map_or_else(|| "numpy_default()".into(), |native| native.expression())
    }

    /// The allocator in Rust. If it is NumPy's, fails with an error that names `caller`, like `pool()`.
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
        match &self.scope {
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
    pub fn key(&self) -> usize {
        self.native().map_or(0, |native| Arc::as_ptr(native).cast::<()>() as usize)
    }
}

impl Drop for PyAllocator {
    fn drop(&mut self) {
        drop(self.scope.take()); // which refers to the allocator, too
        // Only the registry may keep it then.
        let is_last = self.native().is_some_and(|native| Arc::strong_count(native) <= 2);
        drop(self.native.take());
        if is_last {
            owners::sweep();
        }
    }
}

impl PartialEq for PyAllocator {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Hash for PyAllocator {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// Registers `allocator` as an owner, so that its blocks are found by their address, whichever handler frees them.
pub fn register_owner(allocator: &Arc<dyn Allocator>) {
    if allocator.list().is_some() {
        owners::enter(allocator.clone());
    }
    // Large blocks of a buffer are its upstream's.
    let any: &dyn Any = &**allocator;
    if let (true, Some(upstream)) = (any.is::<Buffer>(), allocator.upstream()) {
        register_owner(upstream);
    }
}

/// The adaptor of this type that is the outermost.
pub fn found<'a, T: Any>(allocator: &'a PyAllocator, name: &str) -> PyResult<&'a T> {
    allocator.native().and_then(find).ok_or_else(|| {
        PyTypeError::new_err(format!("there is no {name}() in {}: put it around the allocator", allocator.expression()))
    })
}

/// The upstream of an adaptor.
#[pyfunction]
pub fn upstream(allocator: &PyAllocator) -> Option<PyAllocator> {
    allocator.native().and_then(|native| native.upstream()).cloned().map(PyAllocator::ours)
}

/// Return NumPy's own allocator, to opt out of another one.
///
/// Returns
/// -------
/// Allocator
///
/// Examples
/// --------
/// >>> with ft.use(ft.pool()), ft.use(ft.numpy_default()):
/// ...     ft.get_allocator()
/// numpy_default()
#[pyfunction]
pub fn numpy_default() -> PyAllocator {
    PyAllocator::numpy()
}

/// The process's own pool, made on first use and kept.
pub fn process_pool() -> &'static Arc<dyn Allocator> {
    static POOL: OnceBox<Arc<dyn Allocator>> = OnceBox::new();
    POOL.get_or_init(|| Box::new(Pool::new(Options::default())))
}

/// The process's own pool: one object, whose capsule all threads share.
#[pyfunction]
pub fn default_pool(py: Python<'_>) -> PyResult<Py<PyAllocator>> {
    static ONE: OnceBox<Py<PyAllocator>> = OnceBox::new();
    let make = || Py::new(py, PyAllocator::ours(process_pool().clone())).map(Box::new);
    ONE.get_or_try_init(make).map(|one| one.clone_ref(py))
}
