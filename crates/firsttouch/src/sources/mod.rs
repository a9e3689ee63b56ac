//! Allocators that obtain memory from the system or a library.

#![allow(unsafe_code)] // Safety: each source states which promise of the C library or the heap it relies on.

mod aligned;
mod at_load;
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
mod usable;

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
