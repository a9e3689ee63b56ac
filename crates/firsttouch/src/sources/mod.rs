//! Allocators that obtain memory from the system or a library.

#![allow(unsafe_code)] // Safety: each source states which promise of the C library or the heap it relies on.

mod bundled;
mod calloc;
mod functions;
mod guarded;
#[cfg(all(feature = "jemalloc", unix))]
mod jemalloc;
mod listed;
mod malloc;
#[cfg(feature = "mimalloc")]
mod mimalloc;
mod pages;
mod preloaded;

use crate::allocator::{AllocError, Limit};
use crate::failure;
use crate::spec::room;

pub(crate) use bundled::{may_be_called_by_purger, register_fork_handlers};
pub use calloc::Calloc;
pub use functions::{Functions, FunctionsTable};
pub use guarded::{Guarded, GuardedOptions, Near, Overrun, Side};
#[cfg(all(feature = "jemalloc", unix))]
pub use jemalloc::Jemalloc;
pub use malloc::Malloc;
#[cfg(feature = "mimalloc")]
pub(crate) use mimalloc::GATE as MIMALLOC;
#[cfg(feature = "mimalloc")]
pub use mimalloc::Mimalloc;
pub use pages::Pages;
pub use preloaded::{PreloadedPool, Table};

/// A library has no memory for `asked` bytes.
fn refused(asked: usize) -> AllocError {
    let error = AllocError::new(asked, Limit::Upstream);
    failure::remember(error);
    error
}

room! { bundled calloc guarded malloc pages }
