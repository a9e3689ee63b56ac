//! The operating system: the only place that names a system call.
//!
//! `contract.rs` lists what every platform implements, each in a module of its own, and so does the interpreter Miri.
//! [`BACKEND`] says whether the platform is supported.

#![allow(unsafe_code)] // Safety: each system call states which promise it relies on.

#[cfg(unix)]
mod c_library;
mod contract;
mod inject;
#[cfg(miri)]
mod interpreted;
#[cfg(all(target_os = "linux", not(any(miri, firsttouch_no_backend))))]
mod linux;
mod types;
#[cfg(all(windows, not(any(miri, firsttouch_no_backend))))]
mod windows;

#[cfg(miri)]
use interpreted as platform;
#[cfg(all(target_os = "linux", not(any(miri, firsttouch_no_backend))))]
use linux as platform;
#[cfg(all(not(miri), any(firsttouch_no_backend, not(any(target_os = "linux", windows)))))]
use unsupported as platform;
#[cfg(all(windows, not(any(miri, firsttouch_no_backend))))]
use windows as platform;

#[cfg(unix)]
pub use c_library::{c_aligned_free, c_aligned_malloc, c_aligned_usable, c_calloc, c_free, c_usable};
use contract::unsupported;
pub use contract::*;
pub use inject::{Call, claimable_slots, fail_after, injected, shrink_slots};
#[cfg(all(target_os = "linux", not(any(miri, firsttouch_no_backend))))]
pub use linux::kernel_texts; // for its fuzz target
pub use platform::{BACKEND, PageTable, Thread};
#[cfg(all(windows, not(any(miri, firsttouch_no_backend))))]
pub use platform::{c_aligned_free, c_aligned_malloc, c_aligned_usable, c_calloc, c_free, c_usable};
pub use types::{Bits, Bound, Errno, Fault, Mapping, MemoryBound, Mode, Nodes, PageRegion, Processors, Usage, seen};
