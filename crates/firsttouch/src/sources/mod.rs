//! Allocators that bring memory in.

#![allow(unsafe_code)] // Safety: each source says which of the C library's or the heap's promises it rests on.

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
