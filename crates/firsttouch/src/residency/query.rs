//! Queries the residency of ranges of pages, and summarizes it. A figure that no source tells is `None`, not a guess.

use super::mappings::mappings;
use super::nodes::bytes_by_node;
use super::refine::{refine_cached, refine_sizes, refine_zero_pages};
use super::runs::{PageRuns, PageState, StateSource};
use super::sources::query_states;
use crate::os::{MappingText, locks_memory};
use std::collections::BTreeMap;
use std::ops::Range;

/// The states of some pages, and the source of each distinction between them.
pub struct Residency {
    /// The states.
    pub runs: PageRuns,
    /// Tells which pages are present, and which are swapped.
    pub presence: StateSource,
    /// Tells which pages are the shared zero page.
    pub zero: StateSource,
    /// Tells which pages are huge.
    pub size: StateSource,
    /// Tells which pages are only in the page cache.
    pub cached: StateSource,
}

/// Queries the states of the pages of `ranges`, which are whole pages, sorted and disjoint.
pub fn query(ranges: &[Range<usize>]) -> Residency {
    let (mut runs, presence, table) = query_states(ranges);
    let zero = refine_zero_pages(&mut runs, table.as_ref(), presence);
    let size = refine_sizes(&mut runs, table.as_ref(), presence);
    let cached = refine_cached(&mut runs, presence);
    Residency { runs, presence, zero, size, cached }
}

/// A number of bytes, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Bytes of whole pages; `None` if not known.
    pub bytes: Option<usize>,
    /// The source, or why the figure is not known.
    pub source: &'static str,
}

/// The figures of a [`Residency`].
pub struct ResidencySummary {
    /// Name and figure.
    pub figures: [(&'static str, Figure); 8],
    /// Bytes of real pages by node; -1 stands for pages whose node the kernel does not tell.
    pub nodes: Option<BTreeMap<i32, usize>>,
    /// The source of `nodes`.
    pub nodes_source: &'static str,
}

/// Adds up the states of a query, and determines locked bytes and nodes.
pub fn summarize(residency: &Residency) -> ResidencySummary {
    let runs = &residency.runs;
    let sums = runs.bytes();
    let figure = |source: StateSource, doubts: &[PageState], states: &[PageState]| {
        let doubtful = source == StateSource::None || doubts.iter().any(|&doubt| sums[doubt as usize] > 0);
        Figure {
            bytes: (!doubtful).then(|| states.iter().map(|&state| sums[state as usize]).sum()),
            source: if doubtful { StateSource::None.name() } else { source.name() },
        }
    };
    use PageState::{Absent, Cached, Huge, Present, Real, Small, Swapped, Unknown, Zero};
    let (nodes, nodes_source) = bytes_by_node(runs);
    let figures = [
        ("absent", figure(residency.presence, &[Unknown], &[Absent])),
        ("zero_page", figure(residency.zero, &[Unknown, Present], &[Zero])),
        ("small", figure(residency.size, &[Unknown, Present, Real], &[Small])),
        ("huge", figure(residency.size, &[Unknown, Present, Real], &[Huge])),
        ("real", figure(residency.zero, &[Unknown, Present], &[Small, Huge, Real])),
        ("swapped", figure(residency.presence, &[Unknown], &[Swapped])),
        ("cached", figure(residency.cached, &[Unknown], &[Cached])),
        ("locked", locked(runs)),
    ];
    ResidencySummary { figures, nodes, nodes_source }
}

/// Returns the bytes of present pages that are locked into memory.
fn locked(runs: &PageRuns) -> Figure {
    if locks_memory() == Some(false) {
        return Figure { bytes: Some(0), source: "VmLck of /proc/self/status" };
    }
    let (Some(first), Some(last)) = (runs.iter().next(), runs.iter().last()) else {
        return Figure { bytes: Some(0), source: "no pages" };
    };
    let Ok(mut found) = mappings(MappingText::Long, &(first.range.start..last.range.end)) else {
        return Figure { bytes: None, source: "not known: cannot read /proc/self/smaps" };
    };
    found.retain(|mapping| mapping.locked);
    if runs.has(PageState::Unknown) && !found.is_empty() {
        return Figure { bytes: None, source: "not known: it is not known which pages are present" };
    }
    let mut bytes = 0;
    let mut mappings = found.iter().peekable();
    let present = |state: PageState| state.is_real() || matches!(state, PageState::Zero | PageState::Present);
    for run in runs.iter().filter(|run| present(run.state)) {
        while let Some(mapping) = mappings.peek() {
            let end = mapping.range.end.min(run.range.end);
            bytes += end.saturating_sub(mapping.range.start.max(run.range.start));
            if mapping.range.end > run.range.end {
                break;
            }
            mappings.next();
        }
    }
    Figure { bytes: Some(bytes), source: "VmFlags of /proc/self/smaps" }
}
