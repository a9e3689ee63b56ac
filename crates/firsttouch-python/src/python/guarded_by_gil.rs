//! Values that only the holder of the GIL touches: the package refuses free-threaded Python when it is imported.

#![allow(unsafe_code)] // Safety: whoever borrows proves by a token that it holds the GIL.

use pyo3::prelude::*;
use std::cell::{RefCell, RefMut};

/// A value that is borrowed with the GIL in hand. No Python code runs while it is borrowed, so that it is never borrowed twice.
#[derive(Default)]
pub struct GuardedByGil<T>(RefCell<T>);

// SAFETY: the cell is reached only with the GIL held, by one thread at a time.
unsafe impl<T: Send> Sync for GuardedByGil<T> {}

impl<T> GuardedByGil<T> {
    pub fn new(value: T) -> Self {
        Self(RefCell::new(value))
    }

    /// The value.
    pub fn borrow<'a>(&'a self, _py: Python<'a>) -> RefMut<'a, T> {
        self.0.borrow_mut()
    }
}
