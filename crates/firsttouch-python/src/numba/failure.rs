//! Why a call of compiled code failed. Such code can raise exceptions, but only with constant messages: the exception
//! takes its message from here, in the same thread.

use crate::python::callback;
use firsttouch::allocator::AllocError;
use firsttouch::failure;
use pyo3::prelude::*;
use std::cell::RefCell;

/// Why a call failed: the number of its exception in `native.py`, and the text.
#[derive(Clone)]
pub struct Failure {
    code: i32,
    text: String,
}

impl Failure {
    pub fn memory(text: impl Into<String>) -> Self {
        Self { code: 1, text: text.into() }
    }

    pub fn mark(text: &str) -> Self {
        Self { code: 2, text: text.into() }
    }

    pub fn thread(text: impl Into<String>) -> Self {
        Self { code: 3, text: text.into() }
    }

    pub fn shape(text: String) -> Self {
        Self { code: 4, text }
    }

    /// The exception.
    pub fn error(self, py: Python<'_>) -> PyErr {
        let made = || callback(py, "numba_errors")?.get_item(self.code)?.call1((self.text,));
        made().map_or_else(|error| error, PyErr::from_value)
    }

    /// Keeps a failure for the exception of this thread; its code.
    pub fn put(self) -> i32 {
        let code = self.code;
        LAST.set(self);
        code
    }

    /// The last failure of this thread.
    pub fn last() -> Self {
        LAST.with_borrow(Self::clone)
    }

    pub fn code(&self) -> i32 {
        self.code
    }

    pub fn text(self) -> String {
        self.text
    }
}

impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Self {
        failure::pass_on(error); // with the reason that an upstream in Python gave
        Self::memory(failure::last_reason().unwrap_or_else(|| error.to_string()))
    }
}

thread_local! {
    static LAST: RefCell<Failure> = const { RefCell::new(Failure { code: 0, text: String::new() }) };
}
