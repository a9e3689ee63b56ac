//! The operating system: the only place in the core that names a system call. (Files of the kernel are read elsewhere, too,
//! by the standard library.)
//!
//! `contract.rs` lists what every platform implements, each in a module of its own. Under Miri, all of it is unsupported.

#![allow(unsafe_code)] // Safety: each system call states which promise it relies on.

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

use contract::unsupported;
#[cfg(miri)]
use contract::unsupported as platform;
pub use contract::*;
pub use inject::{Call, fail_after, first_range, injected, shrink_address_space};
#[cfg(unix)]
pub use libc::{
    calloc as c_calloc, free as c_free, malloc as c_malloc, malloc_usable_size as c_usable, realloc as c_realloc,
};
#[cfg(all(target_os = "linux", not(miri)))]
pub use linux::kernel_texts; // for its fuzz target
#[cfg(not(miri))]
pub use platform::PageTable;
pub use platform::Thread;
#[cfg(windows)]
pub use platform::{c_calloc, c_free, c_malloc, c_usable};
pub use types::{BitSet, Bound, Errno, Fault, MemoryBound, Mode, Nodes, PageState, Processors, Usage};
