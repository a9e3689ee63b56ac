//! Allocators that bring memory in.

#![allow(unsafe_code)] // Safety: each source says which of the C library's or the heap's promises it rests on.

mod aligned;
mod calloc;
mod functions;
mod malloc;
mod pages;
mod small_blocks;

pub use aligned::Aligned;
pub use calloc::Calloc;
pub use functions::{Functions, FunctionsTable};
pub use malloc::Malloc;
pub use pages::Pages;
