//! Reasons why an option was not granted.

use crate::os::Errno;
use std::fmt;

/// Why an option was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The block is smaller than one such page.
    Small,
    /// The block's alignment is larger than such a page.
    Alignment,
    /// The pool of explicit huge pages has too few.
    Pool,
    /// The nodes have too few such pages.
    Node,
    /// Transparent huge pages are off.
    Off,
    /// The system does not permit it.
    NotPermitted,
    /// The thread's memory policy allows only other nodes, or no preference.
    OuterPolicy,
    /// The system takes from this node first, and from others when it is full.
    Preferred,
    /// The cpuset does not allow these nodes.
    Cpuset,
    /// The kernel does not support it.
    Unsupported,
    /// The kernel's error.
    Errno(i32),
}

impl Reason {
    /// The reason behind an error of the kernel.
    pub fn of(error: Errno) -> Self {
        match error {
            Errno::NOT_PERMITTED => Self::NotPermitted,
            Errno::NO_CALL | Errno::UNSUPPORTED => Self::Unsupported,
            Errno(code) => Self::Errno(code),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool if cfg!(windows) => write!(f, "too little free memory lies together for such pages"),
            Self::NotPermitted if cfg!(windows) => {
                write!(f, "the user lacks the right \"Lock pages in memory\" (SeLockMemoryPrivilege)")
            }
            Self::Small => write!(f, "the block is smaller than one such page"),
            Self::Alignment => write!(f, "the block's alignment is larger than such a page"),
            Self::Pool => write!(f, "the kernel's pool has too few (/sys/kernel/mm/hugepages: nr_hugepages)"),
            Self::Node => write!(f, "too few of them are free on the requested nodes"),
            Self::Off => write!(f, "/sys/kernel/mm/transparent_hugepage/enabled said never when it was first read"),
            Self::NotPermitted => write!(f, "the system does not permit it (EPERM, as containers do by seccomp)"),
            Self::OuterPolicy => write!(f, "the memory policy inherited by the process does not allow it"),
            Self::Preferred => write!(f, "the system takes pages of other nodes when this one is full"),
            Self::Cpuset => write!(f, "the cpuset allows only other nodes"),
            Self::Unsupported => write!(f, "the kernel does not support it"),
            Self::Errno(0) => write!(f, "the kernel refused"),
            Self::Errno(code) => write!(f, "the kernel refused: {}", std::io::Error::from_raw_os_error(*code)),
        }
    }
}
