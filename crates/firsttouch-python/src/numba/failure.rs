//! Why a call of compiled code failed. Such code can raise exceptions, but only with constant messages: the exception
//! takes its message from here, in the same thread.

use crate::python::callback;
use firsttouch::allocator::AllocError;
use firsttouch::failure;
use pyo3::prelude::*;
use std::cell::RefCell;

/// Why a call failed.
pub enum Failure {
    Memory(String),
    Mark(&'static str),
    /// The threads that use the buffer and tried to; zero if none does.
    Thread(usize, usize),
    /// How many buffers a loop in parallel has, and the number of the thread that found none.
    Few(usize, usize),
    /// The text for a shape of which there can be no array.
    Shape(String),
}

/// A text, or the identifiers of two threads, whose names only Python knows.
pub type FailureText = (String, Option<(usize, usize)>);

/// A failure as reported to Python: the number of its exception, and the text.
#[derive(Clone)]
pub struct FailureReport {
    code: i32,
    text: FailureText,
}

impl Failure {
    pub fn report(&self) -> FailureReport {
        let (code, text, threads) = match self {
            Self::Memory(text) => (1, text.clone(), None),
            Self::Mark(text) => (2, (*text).to_owned(), None),
            Self::Thread(owner, caller) => (3, String::new(), Some((*owner, *caller))),
            Self::Few(count, number) => {
                (3, format!("there are {count} buffers, and thread {number} (from 0) has none: make more"), None)
            }
            Self::Shape(text) => (4, text.clone(), None),
        };
        FailureReport { code, text: (text, threads) }
    }
}

impl FailureReport {
    /// The exception.
    pub fn error(self, py: Python<'_>) -> PyErr {
        let made = || callback(py, "numba_errors")?.get_item(self.code)?.call1((self.text.0,));
        made().map_or_else(|error| error, PyErr::from_value)
    }
}

impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Self {
        failure::pass_on(error); // with the reason that an upstream in Python gave
        Self::Memory(failure::last_reason().unwrap_or_else(|| error.to_string()))
    }
}

thread_local! {
    static LAST: RefCell<FailureReport> = const { RefCell::new(FailureReport { code: 0, text: (String::new(), None) }) };
}

/// Keeps a failure for the exception; its code.
pub fn put(failure: Failure) -> i32 {
    let report = failure.report();
    let code = report.code;
    LAST.set(report);
    code
}

/// The code of the last failure of this thread.
pub fn code() -> i32 {
    LAST.with_borrow(|last| last.code)
}

/// The last failure of this thread.
pub fn last() -> FailureReport {
    LAST.with_borrow(FailureReport::clone)
}

/// Its text, for its exception.
pub fn take() -> FailureText {
    LAST.with_borrow(|last| last.text.clone())
}
