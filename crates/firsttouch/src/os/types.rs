//! The types of the contract.

use crate::size::Bytes;
use std::fmt;

/// An invalid memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The signal's name.
    pub signal: &'static str,
    /// The address accessed.
    pub address: usize,
    /// Whether it was a write, if the processor tells.
    pub wrote: Option<bool>,
}

/// The kernel's counts for a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Seconds since some moment.
    pub wall: f64,
    /// Processor seconds of the program's own code.
    pub user: f64,
    /// Processor seconds of the kernel on the program's behalf.
    pub kernel: f64,
    /// Page faults that needed no reading.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// Processor seconds of child processes that have ended and were waited for.
    pub children: f64,
}

impl Usage {
    /// Processor seconds.
    pub fn processor(&self) -> f64 {
        self.user + self.kernel
    }

    /// Returns what was used since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            wall: self.wall - before.wall,
            user: self.user - before.user,
            kernel: self.kernel - before.kernel,
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            children: self.children - before.children,
        }
    }
}

/// What bounds the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The memory of the machine.
    Machine,
    /// The limit of a memory cgroup: of the process's own or of an ancestor; or of a job of Windows.
    Group,
    /// `RLIMIT_AS`.
    AddressSpace,
    /// `RLIMIT_DATA`, or the limit of a job of Windows for each process.
    Data,
    /// The memory that the system commits to all processes.
    Commit,
}

impl Bound {
    /// Its name, as a user would look it up.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Machine => "the machine",
            Self::Group if cfg!(windows) => "the job",
            Self::Data if cfg!(windows) => "the job, for each process,",
            Self::Commit if cfg!(windows) => "the commit limit",
            Self::Group => "the memory cgroup",
            Self::AddressSpace => "RLIMIT_AS",
            Self::Data => "RLIMIT_DATA",
            Self::Commit => "vm.overcommit_memory=2",
        }
    }
}

/// A bound and its use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBound {
    /// What it is.
    pub whose: Bound,
    /// The bytes that it allows.
    pub limit: usize,
    /// The bytes in use.
    pub used: usize,
}

impl MemoryBound {
    /// The bytes that it still allows.
    pub fn left(&self) -> usize {
        self.limit.saturating_sub(self.used)
    }

    /// Whether other processes share it.
    pub fn is_shared(&self) -> bool {
        matches!(self.whose, Bound::Machine | Bound::Group)
    }
}

impl fmt::Display for MemoryBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} allows {}, of which {} are in use", self.whose.name(), Bytes(self.limit), Bytes(self.used))
    }
}

/// The mode of a NUMA memory policy. The discriminants are Linux's (`MPOL_PREFERRED`, ...).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Mode {
    /// One node, and others when it is full.
    Preferred = 1,
    /// Only the given nodes.
    Bind = 2,
    /// The given nodes in turn, page by page.
    Interleave = 3,
    /// The node of the processor that touches the page first.
    Local = 4,
}

/// The state of a page. The discriminants are part of the Python interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PageState {
    /// Not present: the first touch faults it in.
    Absent = 0,
    /// The kernel's shared zero page: the page was read before it was written.
    Zero = 1,
    /// Memory, on a base page.
    Small = 2,
    /// Memory, on a huge page.
    Huge = 3,
    /// In swap.
    Swapped = 4,
    /// Memory, on a page of unknown size.
    Real = 5,
    /// Memory or the shared zero page; it is not known which.
    Present = 6,
    /// Not known.
    Unknown = 7,
}

/// An error number of the operating system: `errno`, or what `GetLastError` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

/// The number of an error on POSIX systems, and on Windows.
const fn number(posix: i32, windows: i32) -> Errno {
    Errno(if cfg!(windows) { windows } else { posix })
}

impl Errno {
    /// The platform is not supported.
    pub const UNSUPPORTED: Self = Self(-1);
    /// No slot of the address map is empty.
    pub const NO_SLOT: Self = Self(-2);
    /// The address range is in use (`EEXIST`, `ERROR_INVALID_ADDRESS`).
    pub const EXISTS: Self = number(17, 487);
    /// Out of memory (`ENOMEM`, `ERROR_NOT_ENOUGH_MEMORY`).
    pub const NO_MEMORY: Self = number(12, 8);
    /// Not permitted (`EPERM`, `ERROR_PRIVILEGE_NOT_HELD`).
    pub const NOT_PERMITTED: Self = number(1, 1314);
    /// No such file, or no page present (`ENOENT`, `ERROR_FILE_NOT_FOUND`).
    pub const NOTHING_THERE: Self = Self(2);
    /// Interrupted by a signal (`EINTR`, `ERROR_CANCELLED`).
    pub const INTERRUPTED: Self = number(4, 1223);
    /// Temporarily unavailable (`EAGAIN`, `ERROR_NOT_READY`).
    pub const AGAIN: Self = number(11, 21);
    /// Bad address (`EFAULT`, `ERROR_NOACCESS`); [`nodes_of`](super::nodes_of) reports the zero page so.
    pub const BAD_ADDRESS: Self = number(14, 998);
    /// The process has no file descriptor left (`EMFILE`, `ERROR_TOO_MANY_OPEN_FILES`).
    pub const NO_DESCRIPTOR: Self = number(24, 4);
    /// Access denied (`EACCES`, `ERROR_ACCESS_DENIED`).
    pub const NO_ACCESS: Self = number(13, 5);
    /// Invalid argument (`EINVAL`, `ERROR_INVALID_PARAMETER`).
    pub const INVALID: Self = number(22, 87);
    /// The kernel lacks the call (`ENOSYS`, `ERROR_CALL_NOT_IMPLEMENTED`).
    pub const NO_CALL: Self = number(38, 120);

    /// Returns the error of the last failed call of this thread.
    pub fn last() -> Self {
        std::io::Error::last_os_error().into()
    }
}

/// Further numbers that Windows has for it: `ERROR_OUTOFMEMORY`, `ERROR_NO_SYSTEM_RESOURCES`, `ERROR_COMMITMENT_LIMIT`.
const NO_MEMORY_EITHER: [i32; 3] = [14, 1450, 1455];

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(code) if cfg!(windows) && NO_MEMORY_EITHER.contains(&code) => Self::NO_MEMORY,
            Some(code) => Self(code),
            None => Self::NO_ACCESS,
        }
    }
}

/// A set of numbers below `64 * WORDS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitSet<const WORDS: usize>(pub [u64; WORDS]);

/// A set of NUMA nodes; Linux has at most 1024.
pub type Nodes = BitSet<16>;
/// A set of processors; Linux has at most 8192.
pub type Processors = BitSet<128>;

impl<const WORDS: usize> BitSet<WORDS> {
    /// The empty set.
    pub const EMPTY: Self = Self([0; WORDS]);
    /// The capacity of the set.
    pub const CAPACITY: usize = 64 * WORDS;

    /// Inserts a number; does nothing if it is too large.
    pub fn insert(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }

    /// Returns whether the set contains `number`.
    pub fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Returns the intersection.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Iterates over the elements in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..Self::CAPACITY).filter(|&number| self.contains(number))
    }

    /// Parses a list in the kernel's format, like `0-3,8`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut set = Self::EMPTY;
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|_| !text.contains('+'));
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last || last >= Self::CAPACITY {
                return None;
            }
            (first..=last).for_each(|number| set.insert(number));
        }
        Some(set)
    }
}

impl<const WORDS: usize> fmt::Display for BitSet<WORDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<usize> = self.iter().collect();
        for (at, run) in numbers.chunk_by(|one, next| one + 1 == *next).enumerate() {
            let (separator, first, last) = (if at > 0 { "," } else { "" }, run[0], run[run.len() - 1]);
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
        }
        Ok(())
    }
}

impl<const WORDS: usize> FromIterator<usize> for BitSet<WORDS> {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut set = Self::EMPTY;
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}
