//! The operating system: the only place that names a system call.
//!
//! Every platform implements this contract, each in a module of its own, and so does the interpreter Miri:
//!
//! - [`BACKEND`]: whether the platform is supported. If not, every call fails with [`Errno::UNSUPPORTED`].
//! - [`map_anywhere`], [`map_aligned`]: map private, zeroed, readable and writable memory, which [`unmap`] unmaps as a whole.
//! - [`reserve`], [`release`]: keep address space free of other mappings. [`commit`] maps a part of it, at exactly that address
//!   or not at all, and never over an existing mapping; [`decommit`] unmaps a part, of it or of another mapping.
//! - [`discard`] keeps the range, which reads zero afterwards; [`split_huge`] before it lets go
//!   of parts of huge pages. [`protect`] makes pages inaccessible, or accessible again with their content. [`map_anew`]
//!   keeps nothing of either. [`remap`] moves pages from one range to another, or moves none.
//! - [`advise_huge`]: asks for huge pages. A refusal is an error, and harmless. [`unadvise_huge`]: for no more of them.
//! - [`resident_pages`]: estimates how many pages of a range are resident. Never rely on it for correctness.
//! - [`PageTable`]: the states of pages, by a scan or, with less detail, entry by entry. [`nodes_of`], [`in_memory`],
//!   [`mappings`], [`locks_memory`], [`is_shared`]: what else is known of pages. None of them touches a page.
//! - [`page_size`], [`huge_page_size`], [`processors`], [`current_processor`].
//! - [`wait`], [`wake`]: sleep while a word has a value; wake a sleeping thread.
//! - [`spawn`], [`Thread::join`]: a thread that blocks all signals and needs no allocator.
//! - [`help`]: a thread that does a part of its caller's work, and needs no memory of the C library either.
//! - [`at_fork`]: registers fork handlers. [`why_refused`]: tells which limit explains a refusal; [`mappings_are_short`]:
//!   whether it is the number of mappings, of which there may be [`mapping_limit`].
//! - [`headroom`]: memory available to the machine or the container. [`address_space_limit`],
//!   [`data_limit`]: the limits of the process. [`address_space_left`]: what is left of one.
//!   [`resident`]: its resident memory. [`usage`], [`resident_and_peak`]: what it has used. [`stop_reading_files`]: from then on none of them opens a file;
//!   [`ask_nothing`]: or makes a system call at all.
//! - [`memory_file`], [`open_memory_file`], [`map_file`]: memory that other processes can map, found by [`file_name`] and
//!   [`file_number`]. [`file_size`] bounds what may be mapped, [`file_limit`] how many files a process may have open.
//!   [`file_identity`]: whether a descriptor is still the same file's.
//! - [`is_shared`]: whether forked children would write to the same memory.
//! - [`map_huge`], [`populate`], [`collapse`], [`lock`], [`bind`], [`move_pages`]: page size, prefaulting and NUMA node of
//!   a range. [`thread_policy`], [`thread_processors`], [`run_on_processors`]: of a thread.
//!   [`allowed_nodes`], [`current_node`], [`free_memory_of`], [`explicit_huge_pages`], [`free_huge_pages`],
//!   [`transparent_huge_pages`], [`lock_limit`], [`system_file`]: what is available. Any of them may be refused; placement
//!   reports that in its receipt.
//! - [`c_aligned_malloc`], [`c_calloc`]: blocks of the C library that Python and NumPy use, each kind with its own functions
//!   for freeing and for the usable size.
//! - [`watch_faults`]: reports a memory fault before it ends the process. [`write_in_handler`]: lets the handler write.

#![allow(unsafe_code)] // Safety: each system call states which promise it relies on.

#[cfg(unix)]
mod c_library;
mod inject;
#[cfg(miri)]
mod interpreted;
#[cfg(all(target_os = "linux", not(any(miri, firsttouch_no_backend))))]
mod linux;
mod types;
#[cfg(any(miri, firsttouch_no_backend, not(target_os = "linux")))]
#[cfg_attr(any(miri, windows), allow(dead_code))]
mod unsupported;
#[cfg(all(windows, not(any(miri, firsttouch_no_backend))))]
mod windows;

#[cfg(unix)]
pub use c_library::{c_aligned_free, c_aligned_malloc, c_aligned_usable, c_calloc, c_free, c_usable};
pub use inject::{
    Call, Pretence, claimable_slots, fail_after, injected, pretence, pretend, pretend_on, pretended_processor,
    shrink_slots,
};
#[cfg(miri)]
pub use interpreted::*;
#[cfg(all(target_os = "linux", not(any(miri, firsttouch_no_backend))))]
pub use linux::*;
pub use types::{Bits, Bound, Errno, Fault, Mapping, MemoryBound, Mode, Nodes, PageRegion, Processors, Usage, seen};
#[cfg(all(not(miri), any(firsttouch_no_backend, not(any(target_os = "linux", windows)))))]
pub use unsupported::*;
#[cfg(all(windows, not(any(miri, firsttouch_no_backend))))]
pub use windows::*;
