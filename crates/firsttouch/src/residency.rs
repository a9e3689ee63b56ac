//! Residency: the states of the pages of a range. No query touches a page or needs privileges.
//!
//! [`query`] reads the states from the page table of the process: by a scan
//! (`PAGEMAP_SCAN`, Linux 6.7), else entry by entry. What the page table leaves open, other sources tell: `move_pages` the
//! shared zero page, which has no node; `/proc/self/smaps` the huge pages of each mapping. What no source tells is reported as
//! unknown, never guessed. [`summarize`] adds the states up.
//!
//! Other threads keep running: each state is exact for one moment, but not all for the same.

use crate::os::{Errno, PageRegion, PageTable, huge_page_size, mappings, nodes_of, only_node, page_size, seen};
use std::collections::BTreeMap;
use std::ops::Range;

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
use PageState::{Absent, Huge, Present, Real, Small, Swapped, Unknown, Zero};

impl PageState {
    /// The number of states.
    pub const COUNT: usize = 8;

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
    pub fn bytes(&self) -> [usize; PageState::COUNT] {
        let mut bytes = [0; PageState::COUNT];
        self.list.iter().for_each(|run| bytes[run.state as usize] += run.range.len());
        bytes
    }

    fn has(&self, state: PageState) -> bool {
        self.list.iter().any(|run| run.state == state)
    }

    /// Replaces every run in one of `states` by the runs that `split` pushes, which must cover the same pages.
    fn refine(&mut self, states: &[PageState], mut split: impl FnMut(&PageRun, &mut Self)) {
        if !self.list.iter().any(|run| states.contains(&run.state)) {
            return;
        }
        let mut refined = Self { list: Vec::new(), truncated: self.truncated };
        for run in std::mem::take(&mut self.list) {
            if states.contains(&run.state) {
                split(&run, &mut refined);
            } else {
                refined.push(run.range, run.state);
            }
        }
        *self = refined;
    }
}

/// Queries the states of the pages of `range`, which are whole pages.
pub fn query(range: &Range<usize>) -> PageRuns {
    let table = PageTable::open().ok();
    let mut runs = read(table.as_ref(), range);
    refine_zero_pages(&mut runs, table.as_ref());
    refine_sizes(&mut runs, range);
    runs
}

/// What the page table of another process tells of a range of whole pages.
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
    let is_known = told.is_ok() && !runs.has(Present) && !runs.has(Unknown);
    ResidencySummary { figures, nodes: is_known.then_some(nodes) }
}

/// Splits a range at the multiples of `step`.
fn pieces(range: &Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let Range { start, end } = *range;
    (start / step * step..end).step_by(step).map(move |at| at.max(start)..(at + step).min(end))
}

// ---- What the page table tells ---------------------------------------------------------------------------------------

/// Pages queried by one call.
const BATCH: usize = 1024;

/// Reads the states of the pages of `range` from the page table.
fn read(table: Option<&PageTable>, range: &Range<usize>) -> PageRuns {
    let by = |read: fn(&PageTable, &Range<usize>, &mut PageRuns) -> Result<(), Errno>| {
        let mut runs = PageRuns::default();
        read(table?, range, &mut runs).ok().map(|()| runs)
    };
    by(scan).or_else(|| by(read_entries)).unwrap_or_else(|| {
        let mut runs = PageRuns::default();
        runs.push(range.clone(), Unknown);
        runs
    })
}

fn scan(table: &PageTable, range: &Range<usize>, runs: &mut PageRuns) -> Result<(), Errno> {
    let mut regions = [PageRegion::default(); 512];
    let Range { start: mut at, end } = *range;
    let mut behind = at;
    while at < end {
        let (count, reached) = table.scan(at, end, &mut regions)?;
        if reached <= at {
            return Err(Errno::UNSUPPORTED); // no progress: an unknown variant of the call
        }
        at = reached;
        for region in &regions[..count] {
            let state = match region.seen {
                seen if seen & seen::PRESENT == 0 => Swapped,
                seen if seen & seen::ZERO != 0 => Zero,
                seen if seen & seen::HUGE != 0 => Huge,
                _ => Small,
            };
            runs.push(behind..region.start.max(behind), Absent);
            runs.push(region.start.max(behind)..region.end.min(end), state);
            behind = region.end.clamp(behind, end);
        }
    }
    runs.push(behind..end, Absent);
    Ok(())
}

/// Reads the page table entry of every page.
fn read_entries(table: &PageTable, range: &Range<usize>, runs: &mut PageRuns) -> Result<(), Errno> {
    let mut buffer = [0; BATCH];
    for start in range.clone().step_by(BATCH * page_size()) {
        let entries = &mut buffer[..BATCH.min((range.end - start) / page_size())];
        table.entries(start, entries)?;
        for (page, &seen) in (start..).step_by(page_size()).zip(entries.iter()) {
            let state = match seen {
                seen if seen & seen::PRESENT == 0 && seen & seen::SWAPPED != 0 => Swapped,
                seen if seen & seen::PRESENT == 0 => Absent,
                seen if seen & seen::EXCLUSIVE != 0 => Real, // the zero page is never mapped exclusively
                _ => Present,
            };
            runs.push(page..page + page_size(), state);
        }
    }
    Ok(())
}

// ---- What it leaves open ---------------------------------------------------------------------------------------------

/// Tells the shared zero page from memory. An entry never makes the distinction, and a scan before Linux 6.16 reports the
/// huge zero page as a huge page. `move_pages` does, as the zero page has no node.
fn refine_zero_pages(runs: &mut PageRuns, table: Option<&PageTable>) {
    runs.refine(&[Present, Huge], |run, refined| {
        let mut done = run.range.start;
        let result = visit_nodes_of(&run.range, step(run), |pages, node| {
            done = pages.end;
            let state = match node {
                code if code == -Errno::BAD_ADDRESS.0 => Zero,
                // Linux 6.1 to 6.5 report so for pages hidden by automatic NUMA balancing, which are never the zero page.
                code if run.state == Present && (code >= 0 || code == -Errno::NOTHING_THERE.0) => Real,
                _ => run.state,
            };
            refined.push(pages, state);
        });
        if result.is_err() && run.state == Huge {
            // A page that is mapped exclusively is not the zero page; others may or may not be.
            for page in pieces(&(done..run.range.end), step(run)) {
                let mut entry = [0];
                let told = table.is_some_and(|table| table.entries(page.start, &mut entry).is_ok());
                refined.push(page, if told && entry[0] & seen::EXCLUSIVE != 0 { Huge } else { Present });
            }
        } else if result.is_err() {
            refined.push(done..run.range.end, run.state);
        }
    });
}

/// Determines the sizes of real pages, where a scan did not tell, from what `/proc/self/smaps` counts in each mapping: of
/// one that has huge pages in part they stay unknown.
fn refine_sizes(runs: &mut PageRuns, range: &Range<usize>) {
    if !runs.has(Real) {
        return;
    }
    let Ok(found) = mappings(range, true) else { return };
    runs.refine(&[Real], |run, refined| {
        let mut at = run.range.start;
        let first = found.partition_point(|mapping| mapping.range.end <= at);
        for mapping in found[first..].iter().take_while(|mapping| mapping.range.start < run.range.end) {
            let state = match mapping.huge {
                _ if mapping.page > page_size() => Huge,
                0 => Small,
                all if all == mapping.range.len() => Huge,
                _ => Real,
            };
            let (start, end) = (mapping.range.start.max(at), mapping.range.end.min(run.range.end));
            refined.push(at..start, Real);
            refined.push(start..end, state);
            at = end;
        }
        refined.push(at..run.range.end, Real);
    });
}

// ---- Nodes -----------------------------------------------------------------------------------------------------------

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
