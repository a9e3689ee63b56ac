//! Values that several threads of Python's may reach.
//!
//! Where the interpreter has a GIL, its holder has them to itself. Where it has none, each has a lock.

#![allow(unsafe_code)] // Safety: with a GIL, whoever reaches the value proves by a token that it holds it.

use pyo3::prelude::*;

/// A value that one thread at a time reaches, for a few instructions in which no Python code runs.
#[derive(Default)]
pub struct Guarded<T>(Cell<T>);

impl<T> Guarded<T> {
    pub const fn new(value: T) -> Self {
        Self(Cell::new(value))
    }
}

#[cfg(not(Py_GIL_DISABLED))]
mod with_gil {
    use super::{Guarded, Python};
    pub use std::cell::RefCell as Cell;
    use std::cell::RefMut;

    // SAFETY: the cell is reached only with the GIL held, by one thread at a time.
    unsafe impl<T: Send> Sync for Guarded<T> {}

    impl<T> Guarded<T> {
        /// The value, until the guard is dropped.
        pub fn lock<'a>(&'a self, _py: Python<'a>) -> RefMut<'a, T> {
            self.0.borrow_mut()
        }

        /// The value, which nobody else can reach.
        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut()
        }
    }
}
#[cfg(not(Py_GIL_DISABLED))]
use with_gil::Cell;

#[cfg(Py_GIL_DISABLED)]
mod without_gil {
    use super::{Guarded, Python};
    pub use std::sync::Mutex as Cell;
    use std::sync::{MutexGuard, PoisonError, TryLockError};
    use std::time::Duration;

    /// Looks at a lock that follow each other at once, and the time between those after.
    const SHORT: u32 = 20;
    const LONG: Duration = Duration::from_micros(50);

    impl<T> Guarded<T> {
        /// The value, until the guard is dropped.
        ///
        /// A thread that waits is detached from the interpreter, which may have to stop all others meanwhile, and takes
        /// the lock attached: a fork stops all attached threads where none is in the middle of this, so that the
        /// child never meets a lock whose holder does not exist there.
        pub fn lock<'a>(&'a self, py: Python<'a>) -> MutexGuard<'a, T> {
            let mut turn = 0;
            loop {
                match self.0.try_lock() {
                    Ok(guard) => return guard,
                    Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                    // Whoever has it needs a microsecond, unless it lost its processor.
                    Err(TryLockError::WouldBlock) if turn < SHORT => py.detach(std::thread::yield_now),
                    Err(TryLockError::WouldBlock) => py.detach(|| std::thread::sleep(LONG)),
                }
                turn += 1;
            }
        }

        /// The value, which nobody else can reach.
        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
#[cfg(Py_GIL_DISABLED)]
use without_gil::Cell;
