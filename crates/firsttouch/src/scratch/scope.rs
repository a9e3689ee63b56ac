//! A scope: a front uses a buffer here, for the duration of a block of code.
//!
//! It serves while it is open, in its own thread and process. Contexts leak: a child task, a callback and a thread that was
//! handed the context still refer to a scope that has ended or is not theirs. The front asks [`Scope::serves`] and passes
//! such requests on. Ending a scope has nothing to undo, as its buffer counts its blocks.

use super::buffer::Buffer;
use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::fork::forks;
use crate::stats::Stats;
use crate::sync::thread;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// One thread of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    thread: u64,
    process: u32,
}

impl Owner {
    /// The calling thread.
    pub fn current() -> Self {
        Self { thread: thread(), process: forks() }
    }

    /// Whether both are one thread, which goes on in a child that it forks. The system's numbers of threads do not tell: a
    /// child gives those of its parent's other threads to new ones.
    pub fn is_same_thread(self, other: Self) -> bool {
        self.thread == other.thread
    }

    /// Whether this is a thread of the current process.
    pub fn is_here(self) -> bool {
        self.process == forks()
    }
}

/// See the module.
pub struct Scope {
    buffer: Arc<Buffer>,
    /// The thread and the process that opened it, while it is open; no thread has the number zero.
    thread: AtomicU64,
    process: AtomicU32,
}

const CLOSED: u64 = 0;

impl Scope {
    /// A closed scope.
    pub fn new(buffer: Arc<Buffer>) -> Self {
        Self { buffer, thread: AtomicU64::new(CLOSED), process: AtomicU32::new(0) }
    }

    /// Opens it for the calling thread.
    pub fn open(&self) {
        self.process.store(forks(), Relaxed);
        self.thread.store(thread(), Release);
    }

    /// Ends it, from any thread.
    pub fn close(&self) {
        self.thread.store(CLOSED, Release);
    }

    /// Whether it is open, whoever asks.
    pub fn is_open(&self) -> bool {
        self.thread.load(Acquire) != CLOSED
    }

    /// Whether it serves the calling thread.
    #[inline]
    pub fn serves(&self) -> bool {
        self.thread.load(Relaxed) == thread() && self.process.load(Relaxed) == forks()
    }

    /// Whether the calling thread opened it.
    pub fn is_own(&self) -> bool {
        self.thread.load(Relaxed) == thread()
    }

    /// The buffer that it allocates from.
    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.buffer
    }
}

// SAFETY: the buffer keeps the promises.
unsafe impl Allocator for Scope {
    fn describe(&self) -> Description {
        Description::of("scratch").with(self.buffer.describe())
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        self.buffer.allocate(request)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: the caller's promise; its blocks are the buffer's.
        unsafe { self.buffer.deallocate(address) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: as above.
        unsafe { self.buffer.usable_size(address) }
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: as above.
        unsafe { self.buffer.resize_in_place(address, size) }
    }

    fn stats(&self) -> Stats {
        self.buffer.stats()
    }

    fn must_stay(&self) -> bool {
        self.buffer.must_stay()
    }

    fn upstream(&self) -> Option<&Arc<dyn Allocator>> {
        self.buffer.upstream()
    }

    fn owns(&self, address: NonNull<u8>) -> Option<bool> {
        self.buffer.owns(address)
    }

    fn small_limit(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::BufferOptions;
    use crate::sources::Malloc;

    #[test]
    fn it_serves_its_own_thread_while_it_is_open() {
        let buffer = Buffer::growing(Arc::new(Malloc), BufferOptions::default()).unwrap();
        let scope = Scope::new(buffer);
        assert!(!scope.serves());
        scope.open();
        let (open, serves) =
            std::thread::scope(|threads| threads.spawn(|| (scope.is_open(), scope.serves())).join().unwrap());
        assert!(open && !serves && scope.serves());
        scope.close();
        assert!(!scope.is_open() && !scope.serves());
    }
}
