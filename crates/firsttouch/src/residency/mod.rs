//! Residency: the states of the pages of a range. No query touches a page or needs privileges.
//!
//! [`footprint()`] computes the pages of an array. [`query()`] determines their states from the best source that the
//! kernel and the process offer, and names that source; what no source tells is reported as unknown, never guessed.
//! [`summarize`] adds the states up. Other threads keep running: each state is exact for one moment, but not all for
//! the same.

mod ranges;
mod states;

use crate::os::{MappingText, locks_memory};
use ranges::mappings;
pub use ranges::{Mapping, footprint, mappings_in};
pub use states::visit_nodes;
use states::{bytes_by_node, query_states, refine_cached, refine_sizes, refine_zero_pages};
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
    /// In the page cache (of a file, or shared memory), but not touched by this process.
    Cached = 5,
    /// Memory, on a page of unknown size.
    Real = 6,
    /// Memory or the shared zero page; it is not known which.
    Present = 7,
    /// Not known.
    Unknown = 8,
}

impl PageState {
    /// The number of states.
    pub const COUNT: usize = 9;

    /// Returns whether the page is backed by memory of its own.
    pub fn is_real(self) -> bool {
        matches!(self, Self::Small | Self::Huge | Self::Real)
    }
}

/// The source of a state. The discriminants are part of the Python interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum StateSource {
    /// No source.
    None = 0,
    /// The ioctl `PAGEMAP_SCAN`.
    Scan = 1,
    /// The entries of /proc/self/pagemap.
    Pagemap = 2,
    /// `move_pages`.
    MovePages = 3,
    /// `mincore`.
    Mincore = 4,
    /// /proc/self/smaps.
    Smaps = 5,
}

impl StateSource {
    /// Returns the name of the kernel interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "not known: no source is available here",
            Self::Scan => "PAGEMAP_SCAN",
            Self::Pagemap => "/proc/self/pagemap",
            Self::MovePages => "move_pages",
            Self::Mincore => "mincore",
            Self::Smaps => "/proc/self/smaps",
        }
    }
}

/// Adjacent pages in the same state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The addresses of the pages.
    pub range: Range<usize>,
    /// Their state.
    pub state: PageState,
    /// The source of the state.
    pub source: StateSource,
}

/// Runs in the order of their addresses. Adjacent runs differ.
#[derive(Clone, Debug, Default)]
pub struct PageRuns {
    list: Vec<PageRun>,
    /// There was no memory for some of them.
    truncated: bool,
}

impl PageRuns {
    /// Appends a run.
    #[inline]
    pub fn push(&mut self, range: Range<usize>, state: PageState, source: StateSource) {
        if range.is_empty() {
            return;
        }
        if let Some(last) = self.list.last_mut()
            && (last.range.end, last.state, last.source) == (range.start, state, source)
        {
            last.range.end = range.end;
        } else if self.list.try_reserve(1).is_ok() {
            self.list.push(PageRun { range, state, source });
        } else {
            self.truncated = true;
        }
    }

    /// Returns whether there was memory for all runs. Otherwise they say nothing.
    pub fn is_complete(&self) -> bool {
        !self.truncated
    }

    /// Iterates over the runs.
    pub fn iter(&self) -> std::slice::Iter<'_, PageRun> {
        self.list.iter()
    }

    /// Returns the bytes of the pages in each state.
    pub fn bytes(&self) -> [usize; PageState::COUNT] {
        let mut bytes = [0; PageState::COUNT];
        for run in &self.list {
            bytes[run.state as usize] += run.range.len();
        }
        bytes
    }

    /// Returns whether any page is in a state.
    pub fn has(&self, state: PageState) -> bool {
        self.list.iter().any(|run| run.state == state)
    }

    /// Replaces every run in one of `states` by the runs that `split` pushes, which must cover the same pages.
    pub fn refine(&mut self, states: &[PageState], mut split: impl FnMut(&PageRun, &mut Self)) {
        if !self.list.iter().any(|run| states.contains(&run.state)) {
            return;
        }
        let mut refined = Self { list: Vec::new(), truncated: self.truncated };
        for run in std::mem::take(&mut self.list) {
            if states.contains(&run.state) {
                split(&run, &mut refined);
            } else {
                refined.push(run.range, run.state, run.source);
            }
        }
        *self = refined;
    }

    /// Returns the parts of the runs inside `ranges`, which are sorted and disjoint.
    pub fn inside(self, ranges: &[Range<usize>]) -> Self {
        let mut ranges = ranges.iter().peekable();
        let mut found = Self { list: Vec::new(), truncated: self.truncated };
        for run in self.list {
            while let Some(range) = ranges.peek() {
                let (start, end) = (run.range.start.max(range.start), run.range.end.min(range.end));
                found.push(start..end.max(start), run.state, run.source);
                if range.end > run.range.end {
                    break;
                }
                ranges.next();
            }
        }
        found
    }
}
