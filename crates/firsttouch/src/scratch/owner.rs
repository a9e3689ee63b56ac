//! The owner of a scope: one thread of one process.

use crate::os;
use crate::sync::thread;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The number of forks, which tells a child from its parent without a system call.
static PROCESS: AtomicU32 = AtomicU32::new(0);

extern "C" fn nothing() {}

extern "C" fn another_process() {
    PROCESS.fetch_add(1, Relaxed);
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    thread: u64,
    process: u32,
}

impl Owner {
    /// Returns the calling thread.
    pub fn current() -> Self {
        static FORKS: Once = Once::new();
        FORKS.call_once(|| os::at_fork(nothing, nothing, another_process));
        Self { thread: thread(), process: PROCESS.load(Relaxed) }
    }

    /// Whether this is the calling thread.
    #[inline]
    pub fn is_current(self) -> bool {
        self.thread == thread() && self.is_here()
    }

    /// Whether this is a thread of the current process.
    #[inline]
    pub fn is_here(self) -> bool {
        self.process == PROCESS.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_itself_and_nobody_else() {
        let here = Owner::current();
        assert!(here.is_current() && here == Owner::current());
        let there = std::thread::spawn(move || (Owner::current(), here.is_current())).join().unwrap();
        assert!(!there.1 && there.0 != here && there.0.is_here() && !there.0.is_current());
    }
}
