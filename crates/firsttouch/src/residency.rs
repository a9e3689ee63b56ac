//! Residency: the states of the pages of a range. No query touches a page or needs privileges.
//!
//! [`query`] reads the states from the page table of the process: by a scan (`PAGEMAP_SCAN`, Linux 6.7), else entry by entry. Two
//! things it leaves open: `move_pages` tells the shared zero page, which has no node, and `smaps` the sizes of pages where they are
//! alike in a mapping. A state that no source tells is reported as unknown, never guessed. [`summarize`] adds the states up.
//!
//! Other threads keep running: each state is exact for one moment, but not all for the same.

use crate::numa::only_node;
pub use crate::os::PageState;
use crate::os::{Errno, PageTable, huge_page_size, nodes_of, page_size, sizes_of_pages};
use std::collections::BTreeMap;
use std::ops::Range;

use PageState::{Absent, Huge, Present, Real, Small, Swapped, Unknown, Zero};

const STATES: usize = Unknown as usize + 1;

impl PageState {
    /// Returns whether the page is backed by memory of its own.
    pub fn is_real(self) -> bool {
        matches!(self, Small | Huge | Real)
    }
}

/// Adjacent pages in the same state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The addresses of the pages.
    pub range: Range<usize>,
    /// Their state.
    pub state: PageState,
}

/// Runs in the order of their addresses. Adjacent runs differ.
#[derive(Clone, Debug, Default)]
pub struct PageRuns {
    list: Vec<PageRun>,
    /// There was no memory for some of them.
    truncated: bool,
}

impl PageRuns {
    #[inline]
    fn push(&mut self, range: Range<usize>, state: PageState) {
        if range.is_empty() {
            return;
        }
        if let Some(last) = self.list.last_mut()
            && (last.range.end, last.state) == (range.start, state)
        {
            last.range.end = range.end;
        } else if self.list.try_reserve(1).is_ok() {
            self.list.push(PageRun { range, state });
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
    fn bytes(&self) -> [usize; STATES] {
        let mut bytes = [0; STATES];
        self.list.iter().for_each(|run| bytes[run.state as usize] += run.range.len());
        bytes
    }
}

/// Queries the states of the pages of `range`, which are whole pages.
pub fn query(range: &Range<usize>) -> PageRuns {
    let table = PageTable::open().ok();
    with_sizes(with_zero_pages(read(table.as_ref(), range), table.as_ref()), range)
}

/// The states of a range of whole pages of another process, from its page table alone.
///
/// # Errors
/// If there is no such process, or it belongs to another user or is not dumpable.
#[cfg(target_os = "linux")]
pub fn of_process(process: u32, range: &Range<usize>) -> Result<PageRuns, Errno> {
    Ok(read(Some(&PageTable::of(process)?), range))
}

/// The sums of a query, in bytes of whole pages; `None` stands for what is not known.
pub struct ResidencySummary {
    /// Name and bytes.
    pub figures: [(&'static str, Option<usize>); 6],
    /// Bytes of real pages by node; -1 stands for pages whose node the kernel does not tell.
    pub nodes: Option<BTreeMap<i32, usize>>,
}

/// Adds up the states of a query, and determines nodes.
pub fn summarize(runs: &PageRuns) -> ResidencySummary {
    let sums = runs.bytes();
    let figure = |doubts: &[PageState], states: &[PageState]| {
        let is_known = doubts.iter().all(|&doubt| sums[doubt as usize] == 0);
        is_known.then(|| states.iter().map(|&state| sums[state as usize]).sum())
    };
    let figures = [
        ("absent", figure(&[Unknown], &[Absent])),
        ("zero_page", figure(&[Unknown, Present], &[Zero])),
        ("small", figure(&[Unknown, Present, Real], &[Small])),
        ("huge", figure(&[Unknown, Present, Real], &[Huge])),
        ("real", figure(&[Unknown, Present], &[Small, Huge, Real])),
        ("swapped", figure(&[Unknown], &[Swapped])),
    ];
    let mut nodes = BTreeMap::new();
    let told = visit_nodes(runs, |pages, node| *nodes.entry(node.max(-1)).or_insert(0) += pages.len());
    // Pages that may or may not be real could lie on any node.
    let is_known = told.is_ok() && sums[Present as usize] + sums[Unknown as usize] == 0;
    ResidencySummary { figures, nodes: is_known.then_some(nodes) }
}

/// Splits a range at the multiples of `step`.
fn pieces(range: &Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let Range { start, end } = *range;
    (start / step * step..end).step_by(step).map(move |at| at.max(start)..(at + step).min(end))
}

/// Reads the states of the pages of `range` from the page table.
fn read(table: Option<&PageTable>, range: &Range<usize>) -> PageRuns {
    let (mut runs, mut behind) = (PageRuns::default(), range.start);
    let done = table.map(|table| {
        table.visit(range, &mut |pages, state| {
            runs.push(behind..pages.start, Absent);
            behind = pages.end;
            runs.push(pages, state);
        })
    });
    if done != Some(Ok(())) {
        runs = PageRuns::default();
        runs.push(range.clone(), Unknown);
    } else {
        runs.push(behind..range.end, Absent);
    }
    runs
}

/// Tells the shared zero page from memory. An entry never makes the distinction, and a scan before Linux 6.16 reports the
/// huge zero page as a huge page. `move_pages` does, as the zero page has no node.
fn with_zero_pages(runs: PageRuns, table: Option<&PageTable>) -> PageRuns {
    let mut told = PageRuns { list: Vec::new(), truncated: runs.truncated };
    for run in runs.list {
        if !matches!(run.state, Present | Huge) {
            told.push(run.range, run.state);
            continue;
        }
        let mut done = run.range.start;
        let result = visit_nodes_of(&run.range, step(&run), |pages, node| {
            done = pages.end;
            let state = match node {
                code if code == -Errno::BAD_ADDRESS.0 => Zero,
                // Linux 6.1 to 6.5 report so for pages hidden by automatic NUMA balancing, which are never the zero page.
                code if run.state == Present && (code >= 0 || code == -Errno::NOTHING_THERE.0) => Real,
                _ => run.state,
            };
            told.push(pages, state);
        });
        let left = done..run.range.end;
        if result.is_ok() || run.state == Present {
            told.push(left, Present);
            continue;
        }
        // A page that is mapped exclusively is not the zero page; others may or may not be.
        for page in pieces(&left, step(&run)) {
            let is_own = table.is_some_and(|table| table.is_exclusive(page.start));
            told.push(page, if is_own { Huge } else { Present });
        }
    }
    told
}

/// Tells the sizes of pages, which entries do not, where all resident pages of the mappings have one size.
fn with_sizes(mut runs: PageRuns, range: &Range<usize>) -> PageRuns {
    let state = match (runs.bytes()[Real as usize] > 0).then(|| sizes_of_pages(range)).flatten() {
        Some([0, ..]) => Small,
        Some([_, 0, _]) => Huge,
        _ => return runs,
    };
    runs.list.iter_mut().filter(|run| run.state == Real).for_each(|run| run.state = state); // a scan tells all, or none
    runs
}

/// Pages asked about at a time.
const BATCH: usize = 1024;

/// Visits the pages of `range` with their nodes. One page in every `step` bytes is queried, and stands for all of them.
fn visit_nodes_of(range: &Range<usize>, step: usize, mut visit: impl FnMut(Range<usize>, i32)) -> Result<(), Errno> {
    let mut rest = pieces(range, step).peekable();
    while rest.peek().is_some() {
        let (mut pages, mut nodes) = ([const { 0..0 }; BATCH], [0; BATCH]);
        let count = pages.iter_mut().zip(&mut rest).map(|(page, next)| *page = next).count();
        let starts: [usize; BATCH] = std::array::from_fn(|at| pages[at].start);
        nodes_of(&starts[..count], &mut nodes[..count])?;
        pages.into_iter().zip(nodes).take(count).for_each(|(page, node)| visit(page, node));
    }
    Ok(())
}

/// Returns how many bytes of a run are known to lie on one node: a huge page, or a base page.
fn step(run: &PageRun) -> usize {
    // Other architectures have huge pages smaller than the default.
    let known = run.state == Huge && cfg!(target_arch = "x86_64");
    huge_page_size().filter(|_| known).unwrap_or(page_size())
}

/// Visits the real pages of `runs`, in order, with their nodes. The node is negative where the kernel tells none: automatic
/// NUMA balancing hides pages (Linux 6.1 to 6.5), or the pages have left memory meanwhile.
///
/// # Errors
/// If the kernel refuses to tell.
pub fn visit_nodes(runs: &PageRuns, mut visit: impl FnMut(Range<usize>, i32)) -> Result<(), Errno> {
    let mut real = runs.iter().filter(|run| run.state.is_real());
    if let Some(node) = only_node() {
        real.for_each(|run| visit(run.range.clone(), node as i32));
        return Ok(());
    }
    real.try_for_each(|run| visit_nodes_of(&run.range, step(run), &mut visit))
}
