//! The operating system: the only place that names a system call.
//!
//! `contract.rs` lists what every platform implements, each in a module of its own, and so does the interpreter Miri.

#![allow(unsafe_code)] // Safety: each system call states which promise it relies on.

#[cfg(unix)]
mod c_library;
mod contract;
mod inject;
#[cfg(miri)]
mod interpreted;
#[cfg(all(target_os = "linux", not(miri)))]
mod linux;
mod types;
#[cfg(windows)]
mod windows;

#[cfg(miri)]
use interpreted as platform;
#[cfg(all(target_os = "linux", not(miri)))]
use linux as platform;
#[cfg(windows)]
use windows as platform;

#[cfg(unix)]
pub use c_library::{c_aligned_free, c_aligned_malloc, c_aligned_usable, c_calloc, c_free, c_usable};
use contract::unsupported;
pub use contract::*;
pub use inject::{Call, fail_after, first_place, injected, shrink_address_space};
#[cfg(all(target_os = "linux", not(miri)))]
pub use linux::kernel_texts; // for its fuzz target
pub use platform::{PageTable, Thread};
#[cfg(windows)]
pub use platform::{c_aligned_free, c_aligned_malloc, c_aligned_usable, c_calloc, c_free, c_usable};
pub use types::{Bits, Bound, Errno, Fault, MemoryBound, Mode, Nodes, PageState, Processors, Usage};
