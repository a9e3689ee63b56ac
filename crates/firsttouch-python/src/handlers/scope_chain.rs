//! The chain from a scope's handler to those that served before it.

use crate::handlers::capsules;
use crate::numpy::c_api::NumPy;
use pyo3::prelude::*;

/// The nearest handler from `capsule` outwards that is no scope's that ended.
pub fn nearest_open<'py>(capsule: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = capsule.py();
    let mut at = capsule;
    if at.is(NumPy::get(py)?.default_capsule(py)) {
        return Ok(at);
    }
    while let Some(before) = ended(&at)? {
        at = before.into_bound(py);
    }
    Ok(at)
}

/// What served before the scope of this capsule, if it is an ended scope's.
fn ended(capsule: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    let handler = capsules::handler(capsule)?;
    let scope = handler.and_then(|handler| handler.scope()).filter(|(scope, _)| !scope.serves());
    Ok(scope.map(|(_, before)| before.borrow(capsule.py()).clone_ref(capsule.py())))
}
