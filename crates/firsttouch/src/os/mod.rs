//! The operating system: the only place that names a system call.
//!
//! The contract that every platform meets (one file each):
//!
//! - [`BACKEND`]: whether there is one; where not, every call fails with [`Errno::UNSUPPORTED`].
//! - [`map_at`], [`map_anywhere`]: private memory that reads zero, readable and writable; `map_at` exactly there or
//!   not at all, never over something else.
//! - [`unmap`]: the range is free for anybody again. [`discard`]: the range stays ours, holds nothing and reads zero.
//! - [`protect`]: makes pages inaccessible, or accessible again; their content stays.
//! - [`advise_huge`]: ask for huge pages; a wish, whose refusal is an error and harmless.
//! - [`resident_pages`]: a guess at how many pages of a range are there; never the basis of a promise.
//! - [`PageTable`]: what stands behind the pages of a range: by a scan, or entry by entry with less in it.
//!   [`nodes_of`], [`in_memory`], [`mapping_lines`], [`locks_memory`]: what else is known of pages. None touches a page.
//! - [`page_size`], [`huge_page_size`], [`processors`], [`current_processor`].
//! - [`wait`], [`wake`]: sleep on a word while it has a value; wake who sleeps on it.
//! - [`spawn`], [`Thread::join`]: a thread that blocks all signals and needs no allocator.
//! - [`at_fork`]: run code around every fork. [`why_refused`]: which limit explains a refusal;
//!   [`mappings_are_short`]: whether it is the number of mappings.
//! - [`headroom`]: bytes that the machine or the container can still give. [`address_space_limit`]: the process's bound.
//!   [`resident`]: what it has.
//! - [`memory_file`], [`open_memory_file`], [`map_file`]: memory that other processes can map; [`file_name`] and
//!   [`file_number`] find it there, and [`file_size`] bounds what may be mapped. [`file_limit`]: how many a process may
//!   have open.
//! - [`is_shared`]: whether forked children would write to the same memory; [`shared_parts`]: which memory that is.
//! - [`map_huge`], [`populate`], [`collapse`], [`lock`], [`bind`], [`move_pages`]: page size, prefault and NUMA node of a
//!   range; [`thread_policy`], [`prefer_node`], [`thread_processors`], [`run_on_processors`]: of a thread;
//!   [`allowed_nodes`], [`current_node`], [`free_memory_of`], [`explicit_huge_pages`], [`free_huge_pages`], [`transparent_huge_pages`],
//!   [`lock_limit`], [`system_file`]: what there is. Each may be refused; placement says so in its receipt.
//! - [`watch_faults`]: a memory fault is noted before it ends the process. [`write_at_start`]: how a handler notes it.

#![allow(unsafe_code)] // Safety: this is where the machine begins; each block says which promise it rests on.

#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
mod linux;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
mod linux_faults;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
mod linux_limits;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
mod linux_memory_files;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
mod linux_page_table;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
mod linux_placement;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
mod linux_residency;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
mod linux_shared;
#[cfg(not(all(target_os = "linux", not(firsttouch_no_backend))))]
mod none;

#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
pub use linux::*;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
pub use linux_faults::*;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
pub use linux_limits::*;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
pub use linux_memory_files::*;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
pub use linux_page_table::*;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
pub use linux_placement::*;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
pub use linux_residency::*;
#[cfg(all(target_os = "linux", not(firsttouch_no_backend)))]
pub use linux_shared::*;
#[cfg(not(all(target_os = "linux", not(firsttouch_no_backend))))]
pub use none::*;

mod bits;
mod inject;
pub use bits::{Bits, Nodes, Processors};
pub use inject::{
    Call, Pretence, claimable_slots, fail_after, injected, pretence, pretend, pretend_on, pretended_processor,
    shrink_slots,
};

/// An access to memory that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The signal that the system sent.
    pub signal: i32,
    /// Where it was.
    pub address: usize,
    /// Whether it wrote, where that can be known.
    pub wrote: Option<bool>,
}

/// A part of a range that lies in memory which several mappings can share: of the same file, the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPart {
    /// The file: its device and its number there, as the kernel writes them.
    pub file: String,
    /// Bytes of the file.
    pub bytes: std::ops::Range<u64>,
}

/// A memory policy's mode, as the kernel knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nodes of a set and no others.
    Bind,
    /// One node first.
    Preferred,
    /// Page by page over a set.
    Interleave,
    /// The node of the processor that touches the page.
    Local,
}

/// What stands behind a page, as far as the system tells: a set of these bits.
pub mod seen {
    /// A page table entry leads to memory.
    pub const PRESENT: u64 = 1;
    /// In swap.
    pub const SWAPPED: u64 = 2;
    /// The zero page that all share. Only a scan tells.
    pub const ZERO: u64 = 4;
    /// A huge page. Only a scan tells.
    pub const HUGE: u64 = 8;
    /// Nobody else maps it, so it is not the zero page. Only an entry tells.
    pub const EXCLUSIVE: u64 = 16;
}

/// Neighbouring pages with the same bits of [`seen`]; their bounds in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageRegion {
    /// Where the first begins.
    pub start: usize,
    /// Where the last ends.
    pub end: usize,
    /// The bits.
    pub seen: u64,
}

/// Texts in which the kernel tells of mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingText {
    /// A line for each mapping.
    Short,
    /// The same with many figures each; costs a walk over all pages.
    Long,
}

/// An error number of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// No backend for this platform.
    pub const UNSUPPORTED: Self = Self(-1);
    /// Something else is there (EEXIST).
    pub const EXISTS: Self = Self(17);
    /// There is no room (ENOMEM).
    pub const NO_MEMORY: Self = Self(12);
    /// Not permitted (EPERM).
    pub const NOT_PERMITTED: Self = Self(1);
    /// There is no such page, or nothing is there (ENOENT).
    pub const NOTHING_THERE: Self = Self(2);
    /// A signal came (EINTR).
    pub const INTERRUPTED: Self = Self(4);
    /// Not now (EAGAIN).
    pub const AGAIN: Self = Self(11);
    /// A bad address, or no page of one's own is there: what [`nodes_of`] says of the zero page (EFAULT).
    pub const BAD_ADDRESS: Self = Self(14);
    /// The process has no file descriptor left (EMFILE).
    pub const NO_DESCRIPTOR: Self = Self(24);
    /// Not permitted, by the rights of a file (EACCES).
    pub const NO_ACCESS: Self = Self(13);
    /// Somebody holds it (EBUSY).
    pub const BUSY: Self = Self(16);
    /// The arguments make no sense to this kernel (EINVAL).
    pub const INVALID: Self = Self(22);
    /// The kernel lacks the call (ENOSYS).
    pub const NO_CALL: Self = Self(38);
}
