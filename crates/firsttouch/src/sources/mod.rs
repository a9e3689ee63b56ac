//! Allocators that obtain memory from the system or a library.

#![allow(unsafe_code)] // Safety: each source states which promise of the C library or the heap it relies on.

mod aligned;
mod calloc;
mod functions;
#[cfg(all(feature = "jemalloc", unix))]
mod jemalloc;
mod listed;
mod malloc;
#[cfg(feature = "mimalloc")]
mod mimalloc;
mod pages;
mod preloaded;

use crate::allocator::{AllocError, Allocator, Limit};
use crate::heap::purger;
use crate::{failure, os};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub use aligned::Aligned;
pub use calloc::Calloc;
pub use functions::{Functions, FunctionsTable};
#[cfg(all(feature = "jemalloc", unix))]
pub use jemalloc::Jemalloc;
pub use malloc::Malloc;
#[cfg(feature = "mimalloc")]
pub use mimalloc::Mimalloc;
pub use pages::{Pages, PlacedPages};
pub use preloaded::{PreloadedPool, Table};

/// A library has no memory for `asked` bytes.
fn refused(asked: usize) -> AllocError {
    let error = AllocError::new(asked, Limit::Upstream);
    failure::remember(error);
    error
}

/// The address space that has to be left for thread-local data: eight times what glibc maps for a heap.
const LEFT: usize = 1 << 30;

/// Whether the background purger's thread may call `upstream`: a [`tick`](purger::Purgeable::tick) asks this before it
/// returns a deferred trim.
///
/// jemalloc and mimalloc have thread-local data. glibc allocates them when a thread first uses any of them, and ends the
/// process where there is no memory. Where the thread has none yet, it looks for memory, and allocates them at once.
/// Without memory, requests and trims return blocks in the program's threads. The first allocation of a thread also costs
/// address space, for a heap that glibc never gives back, so much of that has to be left.
pub(crate) fn may_be_called_by_purger(upstream: &Arc<dyn Allocator>) -> bool {
    /// The number of the thread that has thread-local data; an earlier one's went with it.
    static HAS_THREAD_DATA: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static USED: Cell<bool> = const { Cell::new(false) };
    }
    let thread = purger::thread_number();
    if !uses_thread_data(upstream) || HAS_THREAD_DATA.load(Relaxed) == thread {
        return true;
    }
    let has_room = os::address_space_left() >= LEFT && has_memory();
    if has_room {
        USED.set(black_box(true));
        HAS_THREAD_DATA.store(thread, Relaxed);
    }
    has_room
}

/// Whether `upstream` is, or stands on, a library with thread-local data.
fn uses_thread_data(upstream: &Arc<dyn Allocator>) -> bool {
    let _ = upstream; // of a build without libraries
    #[cfg(all(feature = "jemalloc", unix))]
    if crate::allocator::find::<Jemalloc>(upstream).is_some() {
        return true;
    }
    #[cfg(feature = "mimalloc")]
    if crate::allocator::find::<Mimalloc>(upstream).is_some() {
        return true;
    }
    false
}

/// Whether the C library has memory, at least four times what the thread-local data of a thread need.
fn has_memory() -> bool {
    const ROOM: usize = 16 << 10;
    // SAFETY: `black_box` keeps the compiler from leaving both calls out.
    unsafe {
        let block = black_box(os::c_calloc(ROOM));
        os::c_free(block);
        !block.is_null()
    }
}

/// Lets the libraries that handle forks themselves register their handlers.
pub(crate) fn register_fork_handlers() {
    #[cfg(all(feature = "jemalloc", unix))]
    jemalloc::initialize();
}

/// Waits, before a fork, until no thread is inside a library that does not handle forks.
pub(crate) fn hold() {
    #[cfg(feature = "mimalloc")]
    mimalloc::hold();
}

/// Ends [`hold`].
///
/// # Safety
/// It was called.
pub(crate) unsafe fn release() {
    #[cfg(feature = "mimalloc")]
    // SAFETY: as demanded.
    unsafe {
        mimalloc::release();
    }
}
