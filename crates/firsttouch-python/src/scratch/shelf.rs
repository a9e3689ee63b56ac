//! Scopes that ended and that nobody knows any more: opening one again costs a third of a new one.

use super::scope::PyScope;
use crate::capsules;
use crate::guarded_by_gil::GuardedByGil;
use crate::install::process_pool;
use crate::numpy_api::NumPy;
use firsttouch::scratch::Scope;
use pyo3::prelude::*;
use std::sync::Arc;

/// So many are kept: nesting is seldom deeper.
const KEPT: usize = 8;

/// What a scope is for NumPy and for Python.
pub struct Parts {
    pub scope: Arc<Scope>,
    /// Its handler's capsule, as NumPy's contexts know it.
    pub capsule: Py<PyAny>,
    /// The capsule of what served before it.
    pub before: Py<PyAny>,
    /// What a `with` statement handed out, if it was one.
    pub object: Option<Py<PyScope>>,
}

/// See the module.
#[derive(Default)]
pub struct Shelf(GuardedByGil<Vec<Parts>>);

impl Parts {
    /// Whether an array, a context or a variable still refers to it, or to a scope on the shelf that was inside it.
    fn is_known(&self, py: Python<'_>, kept: &[Self]) -> bool {
        let inside = || kept.iter().filter(|other| other.before.is(&self.capsule));
        // Those know it by themselves, by their handlers, and by their scopes.
        let by_handlers = inside().filter(|other| other.handlers_before(py).is_some_and(|it| it.is(&self.capsule)));
        let by_scopes = inside().filter(|other| other.scope.outer().is_some_and(|it| Arc::ptr_eq(&it, &self.scope)));
        let capsule = self.capsule.bind(py);
        let known = capsules::references(capsule) > 1 + (inside().count() + by_handlers.count()) as isize
            || capsules::direct_is_known(capsule)
            || self.object.as_ref().is_some_and(|object| PyScope::is_known(object.bind(py)))
            || Arc::strong_count(&self.scope) > self.own_count(py) + by_scopes.count();
        known || inside().any(|other| other.is_known(py, kept))
    }

    /// What its handler says served before it: less than it was made with, once a scope around it ended first.
    fn handlers_before(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let handler = capsules::handler(self.capsule.bind(py)).ok().flatten()?;
        handler.scope().map(|(_, before)| before.borrow(py).clone_ref(py))
    }

    /// How often the parts themselves refer to the scope.
    fn own_count(&self, py: Python<'_>) -> usize {
        let object = self.object.as_ref().map_or(0, |object| PyScope::own_count(object.bind(py)));
        // Itself, the handler, and the allocator in its charge.
        3 + usize::from(capsules::has_direct(self.capsule.bind(py))) + object
    }

    /// Whether nothing but this buffer, NumPy and the process's pool is around it: all else has to be let go of.
    fn is_among_its_own(&self, py: Python<'_>) -> PyResult<bool> {
        let numpy = NumPy::get(py)?;
        let mut at = self.before.bind(py).clone();
        for _ in 0..KEPT {
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
            let before = before.borrow(py).clone_ref(py);
            at = before.into_bound(py);
        }
        Ok(false)
    }
}

impl Shelf {
    /// A scope of this thread in front of the same capsule, if there is one.
    pub fn take(&self, before: &Bound<'_, PyAny>) -> Option<Parts> {
        let py = before.py();
        let mut kept = self.0.borrow(py);
        let at = (0..kept.len()).rev().find(|&at| {
            let parts = &kept[at];
            let here = parts.before.is(before) && parts.scope.owner().is_some_and(|owner| owner.is_current());
            here && !parts.is_known(py, &kept)
        })?;
        Some(kept.remove(at))
    }

    /// Keeps an ended scope. The oldest goes where there are too many.
    pub fn put(&self, py: Python<'_>, mut parts: Parts) {
        if parts.object.as_ref().is_some_and(|object| !PyScope::forget(object.bind(py))) {
            parts.object = None; // somebody has it, and may keep it
        }
        if !parts.is_among_its_own(py).unwrap_or(false) {
            return;
        }
        let oldest = {
            let mut kept = self.0.borrow(py);
            kept.push(parts);
            if kept.len() > KEPT { Some(kept.remove(0)) } else { None }
        };
        drop(oldest); // what it kept may run code of its own
    }
}
