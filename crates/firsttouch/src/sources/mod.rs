//! Allocators that obtain memory from the system or a library.

#![allow(unsafe_code)] // Safety: each source states which promise of the C library or the heap it relies on.

mod aligned;
mod calloc;
#[cfg(any(feature = "mimalloc", feature = "jemalloc"))]
mod embedded;
mod functions;
#[cfg(feature = "jemalloc")]
mod jemalloc;
mod malloc;
#[cfg(feature = "mimalloc")]
mod mimalloc;
mod pages;
mod pages_placed;
mod preloaded;
mod small_blocks;
#[cfg(any(feature = "mimalloc", feature = "jemalloc"))]
mod thread_data;
mod usable;

use crate::allocator::Allocator;
#[cfg(any(feature = "mimalloc", feature = "jemalloc"))]
use crate::allocator::find;
use std::sync::Arc;

pub use aligned::Aligned;
pub use calloc::Calloc;
pub use functions::{Functions, FunctionsTable};
#[cfg(feature = "jemalloc")]
pub use jemalloc::Jemalloc;
pub use malloc::Malloc;
#[cfg(feature = "mimalloc")]
pub use mimalloc::Mimalloc;
pub use pages::Pages;
pub use pages_placed::PlacedPages;
pub use preloaded::{PreloadedPool, Table};

/// Lets the libraries register their fork handlers, and sets their options, before anything uses them.
pub(crate) fn register_fork_handlers() {
    #[cfg(feature = "mimalloc")]
    mimalloc::load();
    #[cfg(feature = "jemalloc")]
    jemalloc::load();
}

/// Whether the purger's thread may give blocks back to `upstream`: a library at the bottom may need memory for that.
pub(crate) fn is_ready(upstream: &Arc<dyn Allocator>) -> bool {
    let _ = upstream; // of a build without libraries
    #[cfg(feature = "jemalloc")]
    if find::<Jemalloc>(upstream).is_some() {
        return thread_data::is_there();
    }
    #[cfg(feature = "mimalloc")]
    if find::<Mimalloc>(upstream).is_some() {
        return thread_data::is_there();
    }
    true
}
