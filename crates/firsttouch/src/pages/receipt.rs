//! Receipts: the requested options of a block, which of them were granted, and the reasons for the others.

use crate::os::{Mode, Nodes};
use crate::pages::mapping::Page;
pub use crate::reason::Reason;

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
    pub refused: [Option<(Page, Reason)>; 2],
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
            refused: [None; 2],
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
}
