//! The owner of a scope: one thread of one process.

use crate::fork::forks;
use crate::sync::thread;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    thread: u64,
    process: u32,
}

impl Owner {
    /// Returns the calling thread.
    pub fn current() -> Self {
        Self { thread: thread(), process: forks() }
    }

    /// Whether both are one thread, which goes on in a child that it forks. The system's numbers of threads do not tell: a
    /// child gives those of its parent's other threads to new ones.
    pub fn is_same_thread(self, other: Self) -> bool {
        self.thread == other.thread
    }

    /// Whether this is the calling thread.
    #[inline]
    pub fn is_current(self) -> bool {
        self.thread == thread() && self.is_here()
    }

    /// Whether this is a thread of the current process.
    #[inline]
    pub fn is_here(self) -> bool {
        self.process == forks()
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
