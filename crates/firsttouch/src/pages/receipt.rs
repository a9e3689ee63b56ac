//! Receipts: what was asked for a block, what was granted, and why not, where it was not. And their sums.

use crate::os::{Mode, Nodes};
use crate::pages::page::Page;
pub use crate::reason::Reason;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The outcome of a placement option.
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

/// The most page sizes that a request may list.
pub const MAX_WISHES: usize = 4;

/// What was granted to one block.
#[derive(Clone, Copy, Debug)]
pub struct Receipt {
    /// Bytes asked for.
    pub asked: usize,
    /// Bytes mapped.
    pub bytes: usize,
    /// Pages that it stands on. Transparent huge pages are granted as a request: the kernel uses them where it can.
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

    /// Why what was asked for is not so: one sentence for each option.
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

/// Blocks and bytes: by option, and by outcome (granted, then the reasons).
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

/// One line of the process's sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The option, see [`STEPS`].
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
