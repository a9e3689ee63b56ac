//! The types of the contract.

use std::ops::Range;

/// An invalid memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The signal.
    pub signal: i32,
    /// The address accessed.
    pub address: usize,
    /// Whether it was a write, if the processor tells.
    pub wrote: Option<bool>,
}

/// A part of a range in memory that several mappings can share: the same bytes of the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPart {
    /// The device and the inode of the file, as the kernel writes them.
    pub file: String,
    /// Bytes of the file.
    pub bytes: Range<u64>,
}

/// What bounds the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The memory of the machine.
    Machine,
    /// The limit of a memory cgroup: of the process's own or of an ancestor.
    Group,
    /// `RLIMIT_AS`.
    AddressSpace,
    /// `RLIMIT_DATA`.
    Data,
}

/// A bound, and what is in use of it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBound {
    /// What it is.
    pub whose: Bound,
    /// The bytes that it allows.
    pub limit: usize,
    /// The bytes in use.
    pub used: usize,
}

/// The mode of a NUMA memory policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only the given nodes.
    Bind,
    /// One node, and others when it is full.
    Preferred,
    /// The given nodes in turn, page by page.
    Interleave,
    /// The node of the processor that touches the page first.
    Local,
}

/// The state of a page, as far as the system reports it, as a set of bits.
pub mod seen {
    /// The page is mapped to memory.
    pub const PRESENT: u64 = 1;
    /// The page is in swap.
    pub const SWAPPED: u64 = 2;
    /// The page is the shared zero page. Only a scan tells.
    pub const ZERO: u64 = 4;
    /// The page is huge. Only a scan tells.
    pub const HUGE: u64 = 8;
    /// The page is mapped exclusively, so it is not the zero page. Only an entry tells.
    pub const EXCLUSIVE: u64 = 16;
}

/// Adjacent pages with the same bits of [`seen`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageRegion {
    /// The address of the first page.
    pub start: usize,
    /// The address after the last page.
    pub end: usize,
    /// The bits.
    pub seen: u64,
}

/// The kernel's lists of mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingText {
    /// One line for each mapping.
    Short,
    /// The same with many counts for each. The kernel walks all pages to compute them.
    Long,
}

/// An error number of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// The platform is not supported.
    pub const UNSUPPORTED: Self = Self(-1);
    /// The address range is in use (`EEXIST`).
    pub const EXISTS: Self = Self(17);
    /// Out of memory (`ENOMEM`).
    pub const NO_MEMORY: Self = Self(12);
    /// Not permitted (`EPERM`).
    pub const NOT_PERMITTED: Self = Self(1);
    /// No such file, or no page present (`ENOENT`).
    pub const NOTHING_THERE: Self = Self(2);
    /// Interrupted by a signal (`EINTR`).
    pub const INTERRUPTED: Self = Self(4);
    /// Temporarily unavailable (`EAGAIN`).
    pub const AGAIN: Self = Self(11);
    /// Bad address (`EFAULT`); [`nodes_of`](super::nodes_of) reports the zero page so.
    pub const BAD_ADDRESS: Self = Self(14);
    /// The process has no file descriptor left (`EMFILE`).
    pub const NO_DESCRIPTOR: Self = Self(24);
    /// Access denied (`EACCES`).
    pub const NO_ACCESS: Self = Self(13);
    /// Busy (`EBUSY`).
    pub const BUSY: Self = Self(16);
    /// Invalid argument (`EINVAL`).
    pub const INVALID: Self = Self(22);
    /// The kernel lacks the call (`ENOSYS`).
    pub const NO_CALL: Self = Self(38);

    /// Returns the error of the last failed call of this thread.
    pub fn last() -> Self {
        std::io::Error::last_os_error().into()
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Self {
        const EIO: i32 = 5;
        Self(error.raw_os_error().unwrap_or(EIO))
    }
}
