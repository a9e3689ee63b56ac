//! Why memory cannot be allocated: the error of a request, and the limit that was exceeded.

use crate::layout::LayoutError;
use crate::os::MemoryBound;
use crate::size::Bytes;
use std::fmt;

/// The limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// No address space of any machine is that large.
    Size,
    /// No block can have that many items, or that alignment.
    Layout(LayoutError),
    /// A limit of the process, or the system's of all that is committed.
    Bound(MemoryBound),
    /// `RLIMIT_MEMLOCK` in bytes, of memory that is to be locked or under `mlockall`.
    Locked(usize),
    /// The kernel's guess that a request exceeds the machine's memory and swap, in bytes (`vm.overcommit_memory=0`).
    Memory(usize),
    /// `vm.max_map_count`, the number of mappings allowed.
    Maps(usize),
    /// Pools have claimed all address space that is for segments.
    Claims,
    /// The budget of a `limited` allocator.
    Budget {
        /// The budget in bytes.
        allowed: usize,
        /// Bytes in use of it.
        used: usize,
    },
    /// A scratch buffer or an arena of a fixed size has no gap that is large enough.
    Full {
        /// The buffer's bytes.
        capacity: usize,
        /// Bytes of its live blocks.
        used: usize,
        /// Number of its live blocks; 0 for an arena, which counts none.
        blocks: u32,
    },
    /// A scratch buffer on storage that a forked child shares with its parent is closed in the child.
    Forked,
    /// Memory that has to be resident at once, beyond the bytes that the machine, the container or the nodes still have.
    Available(usize),
    /// `strict=True`: something that was requested is not granted.
    Placement,
    /// An upstream or the C library refused without a reason.
    Upstream,
    /// The kernel refused with this `errno`, and no limit explains it.
    Errno(i32),
}

/// A request that could not be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocError {
    /// Bytes requested.
    pub asked: usize,
    /// The limit that was exceeded.
    pub limit: Limit,
}

impl AllocError {
    /// An error for `asked` bytes.
    pub const fn new(asked: usize, limit: Limit) -> Self {
        Self { asked, limit }
    }

    /// The limit's name, as a user would look it up.
    pub const fn limit_name(&self) -> &'static str {
        match self.limit {
            Limit::Size | Limit::Layout(_) => "size",
            Limit::Bound(bound) => bound.whose.name(),
            Limit::Locked(_) => "RLIMIT_MEMLOCK",
            Limit::Memory(_) => "vm.overcommit_memory=0",
            Limit::Maps(_) => "vm.max_map_count",
            Limit::Claims => "address space",
            Limit::Budget { .. } => "limited",
            Limit::Full { .. } | Limit::Forked => "scratch buffer",
            Limit::Available(_) => "available memory",
            Limit::Placement => "strict",
            Limit::Upstream => "upstream",
            Limit::Errno(_) => "kernel",
        }
    }
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot allocate {}: ", Bytes(self.asked))?;
        match self.limit {
            Limit::Size => write!(f, "no address space is that large"),
            Limit::Layout(error) => error.fmt(f),
            Limit::Bound(bound) => write!(f, "{bound} ({} are left)", Bytes(bound.left())),
            Limit::Locked(_) if cfg!(windows) => write!(f, "the working set allows no more locked memory"),
            Limit::Locked(limit) => {
                write!(f, "RLIMIT_MEMLOCK allows this process {} of locked memory (ulimit -l)", Bytes(limit))
            }
            Limit::Memory(total) => {
                write!(f, "the kernel refuses more than the machine's memory and swap, {}", Bytes(total))
            }
            Limit::Maps(limit) => write!(f, "vm.max_map_count allows {limit} mappings"),
            Limit::Claims => write!(f, "pools use all of the address space that is for them; use fewer pools"),
            Limit::Budget { allowed, used } => {
                let left = Bytes(allowed.saturating_sub(used));
                write!(f, "limited() allows {}, of which {} are in use ({left} are left)", Bytes(allowed), Bytes(used))
            }
            Limit::Full { capacity, used, blocks } => {
                write!(f, "the fixed buffer has {}, of which {} are in use", Bytes(capacity), Bytes(used))?;
                match blocks {
                    0 => Ok(()),
                    1 => write!(f, " by 1 live block; no free piece is large enough"),
                    _ => write!(f, " by {blocks} live blocks; no free piece is large enough"),
                }
            }
            Limit::Forked => write!(
                f,
                "the buffer's storage is shared with the parent process; in a forked child such a buffer is closed"
            ),
            Limit::Available(available) => {
                write!(f, "they have to be resident at once, and {} are available", Bytes(available))
            }
            Limit::Placement => write!(f, "the placement is strict, and the system did not grant what was requested"),
            Limit::Upstream => write!(f, "the upstream allocator has no memory"),
            Limit::Errno(code) => write!(f, "the kernel refused with errno {code}"),
        }
    }
}

impl std::error::Error for AllocError {}
