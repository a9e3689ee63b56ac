//! Why a call of compiled code failed. Such code can raise exceptions, but not with a text of the moment: the exception
//! asks here for it, in the same thread.

use firsttouch::failure;
use firsttouch::scratch::Refused;
use std::cell::{Cell, RefCell};

/// What a call has to say.
pub enum Failure {
    Memory(String),
    Mark(&'static str),
    /// The threads that use the buffer and wanted to; zero where nobody uses it.
    Thread(usize, usize),
    /// How many buffers a loop in parallel has, and the number of the thread that found none.
    Few(usize, usize),
    /// The text for a shape of which there can be no array.
    Shape(String),
}

impl Failure {
    /// The number by which compiled code tells them apart.
    const fn code(&self) -> i32 {
        match self {
            Self::Memory(_) => 1,
            Self::Mark(_) => 2,
            Self::Thread(..) | Self::Few(..) => 3,
            Self::Shape(_) => 4,
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Failed(error) => {
                failure::remember(error);
                Self::Memory(error.to_string())
            }
            Refused::Crowded => Self::Memory("the buffer holds too much for what lives on it".into()),
        }
    }
}

thread_local! {
    static LAST: RefCell<(String, Option<(usize, usize)>)> = const { RefCell::new((String::new(), None)) };
    static CODE: Cell<i32> = const { Cell::new(0) };
}

/// Keeps a failure for the exception; its code.
pub fn put(failure: Failure) -> i32 {
    let code = failure.code();
    CODE.set(code);
    LAST.with_borrow_mut(|last| {
        *last = match failure {
            Failure::Memory(text) | Failure::Shape(text) => (text, None),
            Failure::Mark(text) => (text.into(), None),
            Failure::Thread(owner, caller) => (String::new(), Some((owner, caller))),
            Failure::Few(count, number) => {
                (format!("there are {count} buffers, and thread {number} (from 0) has none: make more"), None)
            }
        };
    });
    code
}

/// The code of the last failure of this thread.
pub fn code() -> i32 {
    CODE.get()
}

/// The last failure of this thread.
pub fn take() -> (String, Option<(usize, usize)>) {
    LAST.with_borrow(Clone::clone)
}
