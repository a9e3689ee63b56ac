//! Receipts: the requested options of a block, which of them were granted, and the reasons for the others; and their
//! sums.

use crate::os::{Mode, Nodes};
use crate::pages::mapping::Page;
pub use crate::reason::Reason;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The outcome of a placement option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Not requested.
    #[default]
    NotAsked,
    /// Granted.
    Granted,
    /// Granted in part.
    Partly(Reason),
    /// Not granted.
    Refused(Reason),
}

impl Outcome {
    /// Why it was not granted in full.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Partly(reason) | Self::Refused(reason) => Some(*reason),
            _ => None,
        }
    }
}

/// The most page sizes that may be requested.
pub const MAX_WISHES: usize = 4;

/// The options granted to one block.
#[derive(Clone, Copy, Debug)]
pub struct Receipt {
    /// The requested size in bytes.
    pub asked: usize,
    /// The mapped size in bytes.
    pub bytes: usize,
    /// The kind of its pages. Transparent huge pages are a request that the kernel grants where it can.
    pub page: Page,
    /// Page sizes preferred to this one, and why they were not available.
    pub refused: [Option<(Page, Reason)>; MAX_WISHES],
    /// The NUMA policy.
    pub policy: Outcome,
    /// The mode of a granted policy, and its nodes.
    pub nodes: Option<(Mode, Nodes)>,
    /// Whether its pages were prefaulted.
    pub populate: Outcome,
    /// The number of threads that prefaulted.
    pub threads: usize,
    /// Whether it is locked into memory.
    pub lock: Outcome,
}

impl Receipt {
    /// Creates a receipt without options, for base pages.
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

    /// Why options were not granted, one sentence for each.
    pub fn why_not(&self) -> Vec<String> {
        let pages = self.refused.iter().flatten().map(|(page, reason)| format!("huge={page}: {reason}"));
        let others = [("numa", self.policy), ("populate", self.populate), ("lock", self.lock)];
        let others = others.iter().filter_map(|(name, outcome)| Some(format!("{name}: {}", outcome.reason()?)));
        pages.chain(others).collect()
    }

    /// Adds it to the sums of the process.
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

/// The options, named as the arguments.
pub const STEPS: [&str; 4] = ["huge", "numa", "populate", "lock"];

/// Blocks and bytes by option and outcome (granted, then the reasons).
static SUMS: [[[AtomicU64; 2]; 1 + Reason::ALL.len()]; 4] =
    [const { [const { [const { AtomicU64::new(0) }; 2] }; 1 + Reason::ALL.len()] }; 4];

fn count(step: usize, outcome: Outcome, bytes: usize) {
    let at = match outcome {
        Outcome::NotAsked => return,
        Outcome::Granted => 0,
        Outcome::Partly(reason) | Outcome::Refused(reason) => reason.index(),
    };
    SUMS[step][at][0].fetch_add(1, Relaxed);
    SUMS[step][at][1].fetch_add(bytes as u64, Relaxed);
}

/// One line of the sums of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The option, see [`STEPS`].
    pub step: &'static str,
    /// Why it was not granted; `None` if it was.
    pub why_not: Option<String>,
    /// The number of blocks.
    pub blocks: u64,
    /// The requested bytes.
    pub bytes: u64,
}

/// The sums of the process so far, including freed blocks.
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
