//! Allocators that obtain memory from the system or a library.

#![allow(unsafe_code)] // Safety: each place names the promise of the system or library that it relies on.

mod bundled;
mod c_library;
mod guarded;
mod library;
mod pages;

use crate::spec::declared;

#[cfg(feature = "mimalloc")]
pub(crate) use bundled::GATE;
#[cfg(all(feature = "jemalloc", unix))]
pub use bundled::Jemalloc;
#[cfg(feature = "mimalloc")]
pub use bundled::Mimalloc;
pub(crate) use bundled::register_fork_handlers;
pub use c_library::{Calloc, Malloc};
pub use guarded::{Guarded, GuardedOptions, Near, Overrun, Side};
pub use library::{Functions, FunctionsTable};
pub use pages::Pages;

declared! { bundled c_library guarded pages }
