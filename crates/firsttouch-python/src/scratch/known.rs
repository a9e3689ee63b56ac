//! The backings around scratch memory of one's own: one for each object or table, or two would rewind each other's blocks.

use super::buffer::PyBuffer;
use firsttouch::scratch::Over;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What scratch memory is told by: an object's address, or a table's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Object(usize),
    Table(usize),
}

/// A backing that lives as long as a buffer or a block on it, and the buffer around it. As long as it lives, so does the
/// object, so that nothing else has its address.
struct Known {
    over: Weak<Over>,
    buffer: Option<Py<PyWeakrefReference>>,
}

static KNOWN: Mutex<BTreeMap<Key, Known>> = Mutex::new(BTreeMap::new());

/// The buffer around the scratch memory that `key` tells, the same while anyone has it; `make` makes its backing and runs
/// no code of Python's.
pub fn buffer(py: Python<'_>, key: Key, make: impl FnOnce() -> Arc<Over>) -> PyResult<Py<PyBuffer>> {
    let (over, known) = {
        let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get(&key).and_then(|known| Some((known.over.upgrade()?, known))) {
            Some((over, known)) => (over, known.buffer.as_ref().map(|buffer| buffer.clone_ref(py))),
            None => {
                let over = make();
                all.retain(|_, known| known.over.strong_count() > 0);
                all.insert(key, Known { over: Arc::downgrade(&over), buffer: None });
                (over, None)
            }
        }
    };
    if let Some(buffer) = known.and_then(|buffer| buffer.bind(py).upgrade()) {
        return Ok(buffer.cast_into::<PyBuffer>()?.unbind());
    }
    let buffer = Py::new(py, PyBuffer::new(over, false))?;
    let weak = PyWeakrefReference::new(buffer.bind(py))?.unbind();
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get_mut(&key) {
        known.buffer = Some(weak);
    }
    Ok(buffer)
}
