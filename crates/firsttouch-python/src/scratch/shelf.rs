//! Scopes that ended and that nobody knows any more: opening one again costs a third of a new one.

use super::scope::PyScope;
use crate::capsules;
use crate::guarded_by_gil::GuardedByGil;
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
    /// Whether an array, a context or a variable still refers to it, other than `inner` scopes on the shelf.
    fn is_known(&self, py: Python<'_>, inner: isize) -> bool {
        capsules::references(self.capsule.bind(py)) > 1 + inner || capsules::direct_is_known(self.capsule.bind(py))
    }
}

impl Shelf {
    /// A scope of this thread in front of the same capsule, if there is one.
    pub fn take(&self, before: &Bound<'_, PyAny>) -> Option<Parts> {
        let py = before.py();
        let mut kept = self.0.borrow(py);
        let at = (0..kept.len()).rev().find(|&at| {
            let parts = &kept[at];
            parts.before.is(before) && parts.scope.owner().is_some_and(|owner| owner.is_current()) && {
                let inner = kept.iter().filter(|other| other.before.is(&parts.capsule)).count();
                // Each inner one knows it twice: by itself and by its handler.
                !parts.is_known(py, 2 * inner as isize)
            }
        })?;
        Some(kept.remove(at))
    }

    /// Keeps an ended scope. The oldest goes where there are too many.
    pub fn put(&self, py: Python<'_>, mut parts: Parts) {
        if parts.object.as_ref().is_some_and(|object| !PyScope::forget(object.bind(py))) {
            parts.object = None; // somebody has it, and may keep it
        }
        let oldest = {
            let mut kept = self.0.borrow(py);
            kept.push(parts);
            if kept.len() > KEPT { Some(kept.remove(0)) } else { None }
        };
        drop(oldest); // what it kept may run code of its own
    }
}
