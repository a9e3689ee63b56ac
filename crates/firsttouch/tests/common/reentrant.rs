//! An upstream whose functions use the library themselves, wait for a thread that does, and fork: nothing of the
//! library's is locked while it is called.

#![allow(unsafe_code)] // Safety: every block is the C library's, handed on as it came.

#[cfg(unix)]
use super::forked::fork;
use firsttouch::adaptors::{Limited, Options, Pool};
use firsttouch::description::Description;
use firsttouch::sources::Malloc;
use firsttouch::{AllocError, Allocator, Block, Request};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Calls between two that use the library, and between two that fork.
const USE: usize = 8;
#[cfg(unix)]
const FORK: usize = 4000;

/// See the module.
pub struct Reentrant {
    other: Arc<Pool>,
    calls: AtomicUsize,
}

impl Reentrant {
    /// One of its own.
    pub fn shared() -> Arc<dyn Allocator> {
        Arc::new(Self { other: Pool::new(Options::default()), calls: AtomicUsize::new(0) })
    }

    fn use_the_library(&self) {
        let calls = self.calls.fetch_add(1, Relaxed);
        if !calls.is_multiple_of(USE) {
            return;
        }
        let block = self.other.allocate(Request::bytes(100_000)).unwrap();
        // SAFETY: it was just taken.
        unsafe { self.other.deallocate(block.address) };
        drop(Limited::new(Pool::over(Malloc::new(), Options::default()), 1));
        #[cfg(unix)]
        if calls.is_multiple_of(FORK) {
            let other = || {
                drop(Limited::new(Pool::new(Options::default()), 1));
                fork(|| ()).join();
            };
            std::thread::scope(|threads| threads.spawn(other).join().unwrap());
            fork(|| ()).join();
        }
    }
}

// SAFETY: the C library's blocks.
unsafe impl Allocator for Reentrant {
    fn describe(&self) -> Description {
        Description::of("reentrant")
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        self.use_the_library();
        Malloc::get().allocate(request)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        self.use_the_library();
        // SAFETY: the core and the tests pass live blocks of this allocator (`Allocator`), which are the upstream's.
        unsafe { Malloc::get().deallocate(address) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: the core and the tests pass live blocks of this allocator (`Allocator`), which are the upstream's.
        unsafe { Malloc::get().usable_size(address) }
    }

    fn calls_out(&self) -> bool {
        true
    }
}
