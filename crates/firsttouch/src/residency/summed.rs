//! Figures about pages, each with its source. A figure that nobody can tell is nothing, not a guess.

use super::runs::{Source, State};
use super::{Look, locked, nodes};
use std::collections::BTreeMap;

/// Bytes, where they are known, and who said so or why they are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Bytes of whole pages.
    pub bytes: Option<usize>,
    /// Who said so.
    pub source: &'static str,
}

/// All figures.
pub struct Summed {
    /// By name.
    pub figures: [(&'static str, Figure); 8],
    /// Bytes of real pages by node; -1 for those of which the kernel names none.
    pub nodes: Option<BTreeMap<i32, usize>>,
    /// Who said where they lie.
    pub nodes_source: &'static str,
}

impl Source {
    /// As one looks it up.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nobody => "not known: no source for it works here",
            Self::Scan => "PAGEMAP_SCAN",
            Self::Pagemap => "/proc/self/pagemap",
            Self::MovePages => "move_pages",
            Self::Mincore => "mincore",
            Self::Smaps => "/proc/self/smaps",
        }
    }
}

/// Sums up what a look found, and asks for locks and nodes.
pub fn summed(look: &Look) -> Summed {
    let runs = &look.runs;
    let sums = runs.bytes();
    let figure = |source: Source, doubts: &[State], states: &[State]| {
        let doubtful = source == Source::Nobody || doubts.iter().any(|&doubt| sums[doubt as usize] > 0);
        Figure {
            bytes: (!doubtful).then(|| states.iter().map(|&state| sums[state as usize]).sum()),
            source: if doubtful { Source::Nobody.name() } else { source.name() },
        }
    };
    use State::{Absent, Cached, Huge, Present, Real, Small, Swapped, Unknown, Zero};
    let (locked_bytes, locked_source) = locked::bytes(runs);
    let nodes = nodes::sums(runs);
    let figures = [
        ("absent", figure(look.base, &[Unknown], &[Absent])),
        ("zero_page", figure(look.zero, &[Unknown, Present], &[Zero])),
        ("small", figure(look.size, &[Unknown, Present, Real], &[Small])),
        ("huge", figure(look.size, &[Unknown, Present, Real], &[Huge])),
        ("real", figure(look.zero, &[Unknown, Present], &[Small, Huge, Real])),
        ("swapped", figure(look.base, &[Unknown], &[Swapped])),
        ("cached", figure(look.cached, &[Unknown], &[Cached])),
        ("locked", Figure { bytes: locked_bytes, source: locked_source }),
    ];
    Summed { figures, nodes: nodes.bytes, nodes_source: nodes.source }
}
