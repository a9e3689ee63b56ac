//! Residency: the states of the pages of a range. No query touches a page or needs privileges.
//!
//! [`extent`] computes the pages of an array. [`query`] reads their states from the page table of the process: by a scan
//! (Linux 6.7), else entry by entry. What the page table leaves open, other sources tell: `move_pages` the shared zero page,
//! which has no node; `/proc/self/smaps` the huge pages of each mapping. What no source tells is reported as unknown, never
//! guessed. [`summarize`] adds the states up.
//!
//! Other threads keep running: each state is exact for one moment, but not all for the same.

use crate::os::{
    Errno, Mapping, PageRegion, PageTable, huge_page_size, mappings, nodes_of, only_node, page_size, seen,
};
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

    /// Returns the addresses from the first run to the last.
    fn extent(&self) -> Range<usize> {
        let start = self.list.first().map_or(0, |run| run.range.start);
        start..self.list.last().map_or(0, |run| run.range.end)
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

/// The states of some pages, and the sources of the distinctions between them; `None` where no source tells.
pub struct Residency {
    /// The states.
    pub runs: PageRuns,
    /// Tells which pages are present, and which are swapped.
    presence: Option<&'static str>,
    /// Tells which pages are the shared zero page.
    zero: Option<&'static str>,
    /// Tells which pages are huge.
    size: Option<&'static str>,
}

const SCAN: &str = if cfg!(windows) { "QueryWorkingSetEx" } else { "PAGEMAP_SCAN" };
const ENTRIES: &str = "/proc/self/pagemap";
const MOVE_PAGES: &str = if cfg!(windows) { "QueryWorkingSetEx" } else { "move_pages" };
const SMAPS: &str = "/proc/self/smaps";

/// Queries the states of the pages of `range`, which are whole pages.
pub fn query(range: &Range<usize>) -> Residency {
    let table = PageTable::open().ok();
    let (mut runs, presence) = read(table.as_ref(), range);
    let zero = refine_zero_pages(&mut runs, table.as_ref(), presence);
    let size = refine_sizes(&mut runs, presence);
    Residency { runs, presence, zero, size }
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
    pub figures: [(&'static str, Figure); 6],
    /// Bytes of real pages by node; -1 stands for pages whose node the kernel does not tell.
    pub nodes: Option<BTreeMap<i32, usize>>,
    /// The source of `nodes`.
    pub nodes_source: &'static str,
}

/// Adds up the states of a query, and determines nodes.
pub fn summarize(residency: &Residency) -> ResidencySummary {
    let Residency { runs, presence, zero, size } = residency;
    let sums = runs.bytes();
    let figure = |source: &Option<&'static str>, doubts: &[PageState], states: &[PageState]| match source {
        Some(source) if doubts.iter().all(|&doubt| sums[doubt as usize] == 0) => {
            Figure { bytes: Some(states.iter().map(|&state| sums[state as usize]).sum()), source }
        }
        _ => Figure { bytes: None, source: "not known: no source is available here" },
    };
    let figures = [
        ("absent", figure(presence, &[Unknown], &[Absent])),
        ("zero_page", figure(zero, &[Unknown, Present], &[Zero])),
        ("small", figure(size, &[Unknown, Present, Real], &[Small])),
        ("huge", figure(size, &[Unknown, Present, Real], &[Huge])),
        ("real", figure(zero, &[Unknown, Present], &[Small, Huge, Real])),
        ("swapped", figure(presence, &[Unknown], &[Swapped])),
    ];
    let mut nodes = BTreeMap::new();
    let source = visit_nodes(runs, |pages, node| *nodes.entry(node.max(-1)).or_insert(0) += pages.len());
    let (nodes, nodes_source) = match source {
        // Pages that may or may not be real could lie on any node.
        Ok(source) if !runs.has(Present) && !runs.has(Unknown) => (Some(nodes), source),
        Ok(_) => (None, "not known: it is not known which pages are real"),
        Err(_) => (None, "not known: move_pages is refused here"),
    };
    ResidencySummary { figures, nodes, nodes_source }
}

/// Returns the mappings, which are sorted, that a range lies in, and its part in each.
fn parts<'a>(mappings: &'a [Mapping], range: &Range<usize>) -> impl Iterator<Item = (&'a Mapping, Range<usize>)> {
    let (start, end) = (range.start, range.end);
    let first = mappings.partition_point(|mapping| mapping.range.end <= start);
    let inside = mappings[first..].iter().take_while(move |mapping| mapping.range.start < end);
    inside.map(move |mapping| (mapping, mapping.range.start.max(start)..mapping.range.end.min(end)))
}

/// Splits a range at the multiples of `step`.
fn pieces(range: &Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let Range { start, end } = *range;
    (start / step * step..end).step_by(step).map(move |at| at.max(start)..(at + step).min(end))
}

// ---- What the page table tells ---------------------------------------------------------------------------------------

/// Pages queried by one call.
const BATCH: usize = 1024;

/// Reads the states of the pages of `range` from the page table, and returns what told them.
fn read(table: Option<&PageTable>, range: &Range<usize>) -> (PageRuns, Option<&'static str>) {
    for source in [SCAN, ENTRIES] {
        let mut runs = PageRuns::default();
        let mut read = |table| match source {
            SCAN => scan(table, range, &mut runs),
            _ => read_entries(table, range, &mut runs),
        };
        if table.is_some_and(|table| read(table).is_ok()) {
            return (runs, Some(source));
        }
    }
    let mut runs = PageRuns::default();
    runs.push(range.clone(), Unknown);
    (runs, None)
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

/// Tells the shared zero page from memory, and returns the source. An entry never makes the distinction, and a scan before
/// Linux 6.16 reports the huge zero page as a huge page. `move_pages` does, as the zero page has no node.
fn refine_zero_pages(
    runs: &mut PageRuns,
    table: Option<&PageTable>,
    presence: Option<&'static str>,
) -> Option<&'static str> {
    let mut source = presence;
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
            if state != run.state {
                source = Some(MOVE_PAGES);
            }
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
    source.filter(|_| !runs.has(Present))
}

/// Determines the sizes of real pages, where a scan did not tell, from what `/proc/self/smaps` counts in each mapping: of
/// one that has huge pages in part they stay unknown. Returns the source.
fn refine_sizes(runs: &mut PageRuns, presence: Option<&'static str>) -> Option<&'static str> {
    if !runs.has(Real) {
        return presence;
    }
    let found = mappings(&runs.extent(), true).ok()?;
    runs.refine(&[Real], |run, refined| {
        let mut at = run.range.start;
        for (mapping, part) in parts(&found, &run.range) {
            let state = match mapping.huge {
                _ if mapping.page > page_size() => Huge,
                0 => Small,
                all if all == mapping.range.len() => Huge,
                _ => Real,
            };
            refined.push(at..part.start, Real);
            at = part.end;
            refined.push(part, state);
        }
        refined.push(at..run.range.end, Real);
    });
    Some(SMAPS).filter(|_| !runs.has(Real))
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

/// Visits the real pages of `runs`, in order, with their nodes, and returns the source. The node is negative where the
/// kernel tells none: automatic NUMA balancing hides pages (Linux 6.1 to 6.5), or the pages have left memory meanwhile.
///
/// # Errors
/// If the kernel refuses to tell.
pub fn visit_nodes(runs: &PageRuns, mut visit: impl FnMut(Range<usize>, i32)) -> Result<&'static str, Errno> {
    let mut real = runs.iter().filter(|run| run.state.is_real());
    if let Some(node) = only_node() {
        real.for_each(|run| visit(run.range.clone(), node as i32));
        return Ok("/sys/devices/system/node/has_memory: one node");
    }
    real.try_for_each(|run| visit_nodes_of(&run.range, step(run), &mut visit))?;
    Ok(MOVE_PAGES)
}

// ---- The pages of an array -------------------------------------------------------------------------------------------

/// Returns the addresses of the pages from the first to the last that elements of an array lie on.
///
/// `address` is that of the first element, and `item` the size of an element; `shape` and `strides` (in bytes) are as in
/// NumPy. An empty array lies on no page.
pub fn extent(address: usize, item: usize, shape: &[usize], strides: &[isize]) -> Range<usize> {
    if item == 0 || shape.contains(&0) {
        return 0..0;
    }
    let (mut low, mut high) = (address, address.saturating_add(item));
    for (&count, &stride) in shape.iter().zip(strides) {
        let reach = stride.unsigned_abs().saturating_mul(count - 1);
        if stride < 0 {
            low = low.saturating_sub(reach);
        } else {
            high = high.saturating_add(reach);
        }
    }
    let page = page_size();
    low / page * page..high.min(usize::MAX / page * page).next_multiple_of(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: usize = 1 << 40;

    #[test]
    fn the_pages_from_the_first_element_to_the_last() {
        let page = page_size();
        for (offset, item, shape, strides, pages) in [
            (8, 8, &[][..], &[][..], 0..1),
            (16, 8, &[1 << 27], &[8], 0..(1 << 30) / page + 1),
            (0, 8, &[3, 4], &[-2 * page as isize, page as isize / 2], 0..6),
            (page, 1, &[2], &[-1], 0..2),
        ] {
            let low = strides
                .iter()
                .zip(shape)
                .map(|(&stride, &count)| (-stride).max(0) as usize * (count - 1))
                .sum::<usize>();
            let start = AT + low / page * page;
            let found = extent(start + offset, item, shape, strides);
            assert_eq!((found.start - AT) / page..(found.end - AT) / page, pages, "{shape:?}");
        }
    }

    #[test]
    fn strides_out_of_the_address_space_and_empty_arrays() {
        extent(AT, 8, &[1 << 40, 1 << 30], &[1 << 50, -1 << 60]);
        assert!(extent(AT, 8, &[3, 0], &[0, 8]).is_empty() && extent(AT, 0, &[3], &[0]).is_empty());
    }
}
