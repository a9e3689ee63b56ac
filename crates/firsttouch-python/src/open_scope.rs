//! Whether an allocator may make arrays now: a scope may not once it has ended, nor in another thread.

use crate::allocator::PyAllocator;
use crate::memory_out::PyRuntimeError;
use firsttouch::scratch::Scope;
use pyo3::prelude::*;
use std::any::Any;

/// An error for a scope that does not serve here.
pub fn check(allocator: &PyAllocator) -> PyResult<()> {
    let Some(native) = allocator.native() else { return Ok(()) };
    let any: &dyn Any = native.as_ref();
    match any.downcast_ref::<Scope>() {
        Some(scope) if !scope.serves() => Err(PyRuntimeError::new_err(if scope.is_open() {
            "this scope belongs to another thread or process: open one there, with firsttouch.scratch()"
        } else {
            "this scope has ended: its arrays live on, but new ones need an open one, as `with firsttouch.scratch() as \
             s:` gives"
        })),
        _ => Ok(()),
    }
}
