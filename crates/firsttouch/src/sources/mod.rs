//! Allocators that obtain memory from the system or a library.

#![allow(unsafe_code)] // Safety: each source states which promise of the C library or the heap it relies on.

mod aligned;
mod calloc;
mod functions;
#[cfg(feature = "jemalloc")]
mod jemalloc;
mod listed;
mod malloc;
#[cfg(feature = "mimalloc")]
mod mimalloc;
mod pages;
mod preloaded;

use crate::allocator::{AllocError, Allocator, Limit};
use crate::failure;
use std::hint::black_box;
use std::sync::Arc;

pub use aligned::Aligned;
pub use calloc::Calloc;
pub use functions::{Functions, FunctionsTable};
#[cfg(feature = "jemalloc")]
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

/// Whether `upstream` is, or stands on, a library with thread-local data.
pub(crate) fn uses_thread_data(upstream: &Arc<dyn Allocator>) -> bool {
    let _ = upstream; // of a build without libraries
    #[cfg(feature = "jemalloc")]
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
pub(crate) fn has_memory() -> bool {
    const ROOM: usize = 16 << 10;
    // SAFETY: `black_box` keeps the compiler from leaving both calls out.
    unsafe {
        let block = black_box(libc::malloc(ROOM));
        libc::free(block);
        !block.is_null()
    }
}

/// Lets the libraries that handle forks themselves register their handlers.
pub(crate) fn register_fork_handlers() {
    #[cfg(feature = "jemalloc")]
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
