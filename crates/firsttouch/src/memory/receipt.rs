//! Receipts: what was asked for a block, what was granted, and why not, where it was not. And their sums.

use super::placement::Page;
use crate::os::{Errno, Mode, Nodes};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why something was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The block is smaller than one such page.
    Small,
    /// Whole pages would be much larger than the block.
    Waste,
    /// The block is to begin at a multiple of more than such a page.
    Alignment,
    /// The pool of explicit huge pages has too few.
    Pool,
    /// The nodes have too few such pages.
    Node,
    /// Transparent huge pages are off.
    Off,
    /// The system does not permit it.
    NotPermitted,
    /// The thread's memory policy does not allow these nodes.
    OuterPolicy,
    /// The cpuset does not allow these nodes.
    Cpuset,
    /// The kernel lacks it.
    Unsupported,
    /// Somebody interrupted it.
    Interrupted,
    /// The kernel's error.
    Errno(i32),
}

impl Reason {
    /// What an error of the kernel's stands for.
    pub fn of(error: Errno) -> Self {
        match error {
            Errno::NOT_PERMITTED => Self::NotPermitted,
            Errno::NO_CALL | Errno::UNSUPPORTED => Self::Unsupported,
            Errno::INTERRUPTED => Self::Interrupted,
            Errno(code) => Self::Errno(code),
        }
    }

    /// Whether the system refused. What does not suit a small block is no refusal.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Small | Self::Waste)
    }

    fn index(&self) -> usize {
        match self {
            Self::Small => 1,
            Self::Waste => 2,
            Self::Alignment => 3,
            Self::Pool => 4,
            Self::Node => 5,
            Self::Off => 6,
            Self::NotPermitted => 7,
            Self::OuterPolicy => 8,
            Self::Cpuset => 9,
            Self::Unsupported => 10,
            Self::Interrupted => 11,
            Self::Errno(_) => 12,
        }
    }

    const ALL: [Self; 12] = [
        Self::Small,
        Self::Waste,
        Self::Alignment,
        Self::Pool,
        Self::Node,
        Self::Off,
        Self::NotPermitted,
        Self::OuterPolicy,
        Self::Cpuset,
        Self::Unsupported,
        Self::Interrupted,
        Self::Errno(0),
    ];
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Small => write!(f, "the block is smaller than one such page"),
            Self::Waste => write!(f, "whole pages would be more than an eighth larger than the block"),
            Self::Alignment => write!(f, "the block begins at a multiple of more than such a page"),
            Self::Pool => write!(f, "the kernel's pool has too few (/sys/kernel/mm/hugepages: nr_hugepages)"),
            Self::Node => write!(f, "the nodes asked for have too few of them free"),
            Self::Off => write!(f, "/sys/kernel/mm/transparent_hugepage/enabled says never"),
            Self::NotPermitted => write!(f, "the system does not permit it (EPERM, as containers do by seccomp)"),
            Self::OuterPolicy => write!(f, "the memory policy that the process was started with keeps to other nodes"),
            Self::Cpuset => write!(f, "the cpuset leaves other nodes only"),
            Self::Unsupported => write!(f, "the kernel can't"),
            Self::Interrupted => write!(f, "it was interrupted"),
            Self::Errno(0) => write!(f, "the kernel refused"),
            Self::Errno(code) => write!(f, "the kernel refused: {}", std::io::Error::from_raw_os_error(*code)),
        }
    }
}

/// What became of a wish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Nobody asked.
    #[default]
    NotAsked,
    /// It is so.
    Granted,
    /// A part of it is so.
    Partly(Reason),
    /// It is not so.
    Refused(Reason),
}

impl Outcome {
    /// Why it is not wholly so.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Partly(reason) | Self::Refused(reason) => Some(*reason),
            _ => None,
        }
    }
}

/// The most page sizes that a wish may list.
pub const MAX_WISHES: usize = 4;

/// What was granted to one block.
#[derive(Clone, Copy, Debug)]
pub struct Receipt {
    /// Bytes asked for.
    pub asked: usize,
    /// Bytes mapped.
    pub bytes: usize,
    /// Pages that it stands on. Transparent huge pages are granted as a wish: the kernel gives them where it can.
    pub page: Page,
    /// Pages that were asked for before these, and why they were not had.
    pub refused: [Option<(Page, Reason)>; MAX_WISHES],
    /// The NUMA policy.
    pub policy: Outcome,
    /// How nodes are chosen, and among which, where a policy was granted.
    pub nodes: Option<(Mode, Nodes)>,
    /// Whether its pages were made real at once.
    pub populate: Outcome,
    /// By how many threads.
    pub threads: usize,
    /// Whether it is locked into memory.
    pub lock: Outcome,
}

impl Receipt {
    /// Nothing asked, base pages.
    pub const fn new(asked: usize) -> Self {
        Self {
            asked,
            bytes: 0,
            page: Page::Base,
            refused: [None; MAX_WISHES],
            policy: Outcome::NotAsked,
            nodes: None,
            populate: Outcome::NotAsked,
            threads: 0,
            lock: Outcome::NotAsked,
        }
    }

    /// Why what was asked for is not so: one sentence for each wish.
    pub fn why_not(&self) -> Vec<String> {
        let pages = self.refused.iter().flatten().map(|(page, reason)| format!("huge={page}: {reason}"));
        let others = [("numa", self.policy), ("populate", self.populate), ("lock", self.lock)];
        let others = others.iter().filter_map(|(name, outcome)| Some(format!("{name}: {}", outcome.reason()?)));
        pages.chain(others).collect()
    }

    /// Adds it to the process's sums.
    pub fn count(&self, wished: bool) {
        self.refused.iter().flatten().for_each(|(_, reason)| count(0, Outcome::Refused(*reason), self.asked));
        if wished && self.page != Page::Base {
            count(0, Outcome::Granted, self.asked);
        }
        count(1, self.policy, self.asked);
        count(2, self.populate, self.asked);
        count(3, self.lock, self.asked);
    }
}

/// What may be wished for, as the arguments are called.
pub const STEPS: [&str; 4] = ["huge", "numa", "populate", "lock"];

/// Blocks and bytes: by wish, and by outcome (granted, then the reasons).
static SUMS: [[[AtomicU64; 2]; 13]; 4] = [const { [const { [const { AtomicU64::new(0) }; 2] }; 13] }; 4];

fn count(step: usize, outcome: Outcome, bytes: usize) {
    let at = match outcome {
        Outcome::NotAsked => return,
        Outcome::Granted => 0,
        Outcome::Partly(reason) | Outcome::Refused(reason) => reason.index(),
    };
    SUMS[step][at][0].fetch_add(1, Relaxed);
    SUMS[step][at][1].fetch_add(bytes as u64, Relaxed);
}

/// One line of the process's sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The wish, see [`STEPS`].
    pub step: &'static str,
    /// Why it was not granted; nothing where it was.
    pub why_not: Option<String>,
    /// Blocks.
    pub blocks: u64,
    /// Bytes asked for.
    pub bytes: u64,
}

/// What the process asked for and got so far, blocks that are gone included.
pub fn sums() -> Vec<Sum> {
    let lines = STEPS.iter().zip(&SUMS).flat_map(|(&step, row)| {
        row.iter().enumerate().map(move |(at, [blocks, bytes])| Sum {
            step,
            why_not: at.checked_sub(1).map(|at| Reason::ALL[at].to_string()),
            blocks: blocks.load(Relaxed),
            bytes: bytes.load(Relaxed),
        })
    });
    lines.filter(|sum| sum.blocks > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn reasons_have_their_places() {
        for (at, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), at + 1);
        }
    }
}
