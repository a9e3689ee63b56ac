//! Scopes as Python objects, and the cache of ended scopes that nothing refers to: reopening one costs a third of making
//! one.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::process_pool::process_pool;
use crate::handlers::capsules;
use crate::numpy::c_api::NumPy;
use crate::python::errors::PyRuntimeError;
use crate::python::guarded::Guarded;
use crate::scratch::raw_memory::raw;
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
    buffer: Guarded<Option<Py<PyAllocator>>>,
}

impl PyScope {
    pub fn new(scope: &Arc<Scope>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(PyAllocator::ours(scope.clone()))
            .add_subclass(Self { scope: scope.clone(), buffer: Guarded::default() })
    }

    /// Sets the buffer that it takes memory from.
    pub fn belong_to(&self, py: Python<'_>, buffer: Py<PyAllocator>) {
        let old = self.buffer.lock(py).replace(buffer);
        drop(old);
    }

    /// Whether anything but the caller refers to it, or to an array that it made.
    pub fn is_known(this: &Bound<'_, Self>) -> bool {
        let capsule = this.as_super().get().capsule().get(this.py());
        capsules::references(this.as_any()) > 1
            || capsule.is_some_and(|capsule| capsules::references(capsule.bind(this.py())) > 1)
    }

    /// The references from this object to its scope.
    pub fn reference_count(this: &Bound<'_, Self>) -> usize {
        // As a scope, as an allocator, and by the handler of its constructors.
        2 + usize::from(this.as_super().get().capsule().get(this.py()).is_some())
    }

    /// Drops the buffer where nothing else refers to the scope or to what it made. Returns whether that was so.
    pub fn forget(this: &Bound<'_, Self>) -> bool {
        if Self::is_known(this) {
            return false;
        }
        let buffer = this.get().buffer.lock(this.py()).take();
        drop(buffer);
        true
    }
}

#[pymethods]
impl PyScope {
    /// Buffer that the scope takes memory from.
    #[getter]
    fn buffer(&self, py: Python<'_>) -> PyResult<Py<PyAllocator>> {
        let buffer = self.buffer.lock(py).as_ref().map(|buffer| buffer.clone_ref(py));
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

/// Ended scopes kept for each buffer: nesting is seldom deeper.
const MAX_KEPT: usize = 8;

/// A scope with what represents it in NumPy and in Python.
pub struct ScopeParts {
    pub scope: Arc<Scope>,
    /// Its handler's capsule, as NumPy's contexts know it.
    pub capsule: Py<PyAny>,
    /// The capsule of what served before it.
    pub before: Py<PyAny>,
    /// What a `with` statement handed out, if it was one.
    pub object: Option<Py<PyScope>>,
}

/// Ended scopes of one buffer.
#[derive(Default)]
pub struct ScopeCache(Guarded<Vec<ScopeParts>>);

impl ScopeParts {
    /// Whether an array, a context or a variable still refers to it, or to a scope in the cache that was inside it.
    fn is_known(&self, py: Python<'_>, kept: &[Self]) -> bool {
        let inside = || kept.iter().filter(|other| other.before.is(&self.capsule));
        // Those know it by themselves, by their handlers, and by their scopes.
        let by_handlers = inside().filter(|other| other.handlers_before(py).is_some_and(|it| it.is(&self.capsule)));
        let by_scopes = inside().filter(|other| other.scope.outer().is_some_and(|it| Arc::ptr_eq(&it, &self.scope)));
        let capsule = self.capsule.bind(py);
        let known = capsules::references(capsule) > 1 + (inside().count() + by_handlers.count()) as isize
            || self.object.as_ref().is_some_and(|object| PyScope::is_known(object.bind(py)))
            || Arc::strong_count(&self.scope) > self.reference_count(py) + by_scopes.count();
        known || inside().any(|other| other.is_known(py, kept))
    }

    /// What its handler says served before it: less than it was made with, once a scope around it ended first.
    fn handlers_before(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let handler = capsules::handler(self.capsule.bind(py)).ok().flatten()?;
        handler.scope().map(|(_, before)| before.lock(py).clone_ref(py))
    }

    /// The references from the parts themselves to the scope.
    fn reference_count(&self, py: Python<'_>) -> usize {
        let object = self.object.as_ref().map_or(0, |object| PyScope::reference_count(object.bind(py)));
        // Itself, the handler, and the allocator in its charge.
        3 + object
    }

    /// Whether nothing but this buffer, NumPy and the process's pool is around it: all else has to be let go of.
    fn is_among_its_own(&self, py: Python<'_>) -> PyResult<bool> {
        let numpy = NumPy::get(py)?;
        let mut at = self.before.bind(py).clone();
        for _ in 0..MAX_KEPT {
            if at.is(numpy.default_capsule(py)) {
                return Ok(true);
            }
            let Some(handler) = capsules::handler(&at)? else { return Ok(false) };
            let Some((scope, before)) = handler.scope() else {
                return Ok(Arc::ptr_eq(handler.allocator(), process_pool()));
            };
            if !scope.serves() || !Arc::ptr_eq(scope.backing(), self.scope.backing()) {
                return Ok(false);
            }
            let before = before.lock(py).clone_ref(py);
            at = before.into_bound(py);
        }
        Ok(false)
    }
}

impl ScopeCache {
    /// A scope of this thread in front of the same capsule, if there is one.
    pub fn take(&self, before: &Bound<'_, PyAny>) -> Option<ScopeParts> {
        let py = before.py();
        let mut kept = self.0.lock(py);
        let at = (0..kept.len()).rev().find(|&at| {
            let parts = &kept[at];
            let here = parts.before.is(before) && parts.scope.owner().is_some_and(|owner| owner.is_current());
            here && !parts.is_known(py, &kept)
        })?;
        Some(kept.remove(at))
    }

    /// Keeps an ended scope. The oldest goes where there are too many.
    pub fn put(&self, py: Python<'_>, mut parts: ScopeParts) {
        if parts.object.as_ref().is_some_and(|object| !PyScope::forget(object.bind(py))) {
            parts.object = None; // a program refers to it, and may keep it
        }
        if !parts.is_among_its_own(py).unwrap_or(false) {
            return;
        }
        let oldest = {
            let mut kept = self.0.lock(py);
            kept.push(parts);
            if kept.len() > MAX_KEPT { Some(kept.remove(0)) } else { None }
        };
        drop(oldest); // dropping it may run Python code
    }
}
