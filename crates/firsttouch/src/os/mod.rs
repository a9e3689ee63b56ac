//! The operating system: the only place that names a system call.
//!
//! `contract.rs` lists what every platform implements, each in a module of its own. For programs that Miri
//! interprets all of it is unsupported.

#![allow(unsafe_code)] // Safety: each system call states which promise it relies on.

#[cfg(unix)]
mod c_library;
mod contract;
mod inject;
#[cfg(all(target_os = "linux", not(miri)))]
mod linux;
mod types;
#[cfg(windows)]
mod windows;

#[cfg(all(target_os = "linux", not(miri)))]
use linux as platform;
#[cfg(windows)]
use windows as platform;

#[cfg(unix)]
pub use c_library::{c_calloc, c_free, c_malloc, c_usable};
use contract::unsupported;
#[cfg(miri)]
use contract::unsupported as platform;
pub use contract::*;
pub use inject::{Call, fail_after, first_place, injected, shrink_address_space};
#[cfg(all(target_os = "linux", not(miri)))]
pub use linux::kernel_texts; // for its fuzz target
#[cfg(not(miri))]
pub use platform::PageTable;
pub use platform::Thread;
#[cfg(windows)]
pub use platform::{c_calloc, c_free, c_malloc, c_usable};
pub use types::{Bits, Bound, Errno, Fault, MemoryBound, Mode, Nodes, PageState, Processors, Usage};
