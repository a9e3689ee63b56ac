//! Residency: the states of the pages of a range. No query touches a page or needs privileges.
//!
//! [`footprint`] computes the pages of an array. [`query`] reads their states from the page table of the process: by a scan
//! (Linux 6.7), else entry by entry. What the page table leaves open, other sources tell: `move_pages` the shared zero page,
//! which has no node; `/proc/self/smaps` the huge pages of each mapping; `mincore` the page cache. What no source tells is
//! reported as unknown, never guessed. [`summarize`] adds the states up.
//!
//! Other threads keep running: each state is exact for one moment, but not all for the same.

use crate::os::{
    Errno, Mapping, PageRegion, PageTable, huge_page_size, in_memory, locks_memory, mappings, may_ask_for_cache,
    nodes_of, only_node, page_size, seen,
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
    /// In the page cache (of a file, or shared memory), but not touched by this process.
    Cached = 5,
    /// Memory, on a page of unknown size.
    Real = 6,
    /// Memory or the shared zero page; it is not known which.
    Present = 7,
    /// Not known.
    Unknown = 8,
}
use PageState::{Absent, Cached, Huge, Present, Real, Small, Swapped, Unknown, Zero};

impl PageState {
    /// The number of states.
    pub const COUNT: usize = 9;

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
    /// Tells which pages are only in the page cache.
    cached: Option<&'static str>,
}

const SCAN: &str = if cfg!(windows) { "QueryWorkingSetEx" } else { "PAGEMAP_SCAN" };
const ENTRIES: &str = "/proc/self/pagemap";
const MOVE_PAGES: &str = if cfg!(windows) { "QueryWorkingSetEx" } else { "move_pages" };
const SMAPS: &str = "/proc/self/smaps";

/// Queries the states of the pages of `ranges`, which are whole pages, sorted and disjoint.
pub fn query(ranges: &[Range<usize>]) -> Residency {
    let table = PageTable::open().ok();
    let (mut runs, presence) = read(table.as_ref(), ranges);
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
    let Residency { runs, presence, zero, size, cached } = residency;
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
        ("cached", figure(cached, &[Unknown], &[Cached])),
        ("locked", locked(runs)),
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

/// Returns the bytes of present pages that are locked into memory.
fn locked(runs: &PageRuns) -> Figure {
    if cfg!(windows) {
        return Figure { bytes: None, source: "not known: Windows does not tell" };
    }
    if runs.list.is_empty() || locks_memory() == Some(false) {
        return Figure { bytes: Some(0), source: "VmLck of /proc/self/status" };
    }
    let Ok(mut found) = mappings(&runs.extent(), true) else {
        return Figure { bytes: None, source: "not known: cannot read /proc/self/smaps" };
    };
    found.retain(|mapping| mapping.locked);
    if runs.has(Unknown) && !found.is_empty() {
        return Figure { bytes: None, source: "not known: it is not known which pages are present" };
    }
    let present = runs.iter().filter(|run| run.state.is_real() || matches!(run.state, Zero | Present));
    let bytes = present.map(|run| parts(&found, &run.range).map(|part| part.len()).sum::<usize>()).sum();
    Figure { bytes: Some(bytes), source: "VmFlags of /proc/self/smaps" }
}

/// Returns the parts of a range that lie in the mappings, which are sorted.
fn parts(mappings: &[Mapping], range: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let (start, end) = (range.start, range.end);
    let first = mappings.partition_point(|mapping| mapping.range.end <= start);
    let inside = mappings[first..].iter().take_while(move |mapping| mapping.range.start < end);
    inside.map(move |mapping| mapping.range.start.max(start)..mapping.range.end.min(end))
}

/// Splits a range at the multiples of `step`.
fn pieces(range: &Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let Range { start, end } = *range;
    (start / step * step..end).step_by(step).map(move |at| at.max(start)..(at + step).min(end))
}

// ---- What the page table tells ---------------------------------------------------------------------------------------

/// Pages queried by one call.
const BATCH: usize = 1024;

/// Reads the states of the pages of `ranges` from the page table, and returns what told them.
fn read(table: Option<&PageTable>, ranges: &[Range<usize>]) -> (PageRuns, Option<&'static str>) {
    for source in [SCAN, ENTRIES] {
        let mut runs = PageRuns::default();
        let mut read = |table| match source {
            SCAN => scan(table, ranges, &mut runs),
            _ => ranges.iter().try_for_each(|range| read_entries(table, range, &mut runs)),
        };
        if table.is_some_and(|table| read(table).is_ok()) {
            return (runs, Some(source));
        }
    }
    let mut runs = PageRuns::default();
    ranges.iter().for_each(|range| runs.push(range.clone(), Unknown));
    (runs, None)
}

/// Smaller gaps between ranges are scanned, too: a call costs more.
const NEAR: usize = 256 << 10;

fn scan(table: &PageTable, ranges: &[Range<usize>], runs: &mut PageRuns) -> Result<(), Errno> {
    let mut regions = [PageRegion::default(); 512];
    for mut near in ranges.chunk_by(|one, next| next.start - one.end < NEAR) {
        let (mut at, end) = (near[0].start, near[near.len() - 1].end);
        let mut behind = at;
        let mut push = |pages: Range<usize>, state| {
            while let Some(range) = near.first() {
                runs.push(pages.start.max(range.start)..pages.end.min(range.end), state);
                if range.end > pages.end {
                    break;
                }
                near = &near[1..];
            }
        };
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
                push(behind..region.start.max(behind), Absent);
                push(region.start.max(behind)..region.end.min(end), state);
                behind = region.end.max(behind);
            }
        }
        push(behind..end, Absent);
    }
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

/// Larger mappings are not walked: reading their entries would take a tenth of a second.
const MAX_WALKED_SIZE: usize = 64 << 30;

/// Determines the sizes of real pages, where they are certain, from the huge pages that `/proc/self/smaps` counts in each
/// mapping. Returns the source.
fn refine_sizes(
    runs: &mut PageRuns,
    table: Option<&PageTable>,
    presence: Option<&'static str>,
) -> Option<&'static str> {
    if !runs.has(Real) {
        return presence;
    }
    for mapping in &mappings(&runs.extent(), true).ok()? {
        if mapping.page > page_size() {
            set_sizes(runs, &mapping.range, |_| Huge);
        } else if mapping.huge == 0 {
            set_sizes(runs, &mapping.range, |_| Small);
        } else if let Some(blocks) = full_blocks(table, mapping) {
            // Every huge page fills a block; if there are as many as full blocks, each full block is one.
            let huge = blocks.len() * huge_page_size().unwrap_or(0) == mapping.huge;
            set_sizes(runs, &mapping.range, |block| match blocks.binary_search(&block) {
                Err(_) => Small,
                Ok(_) if huge => Huge,
                Ok(_) => Real,
            });
        }
    }
    Some(SMAPS).filter(|_| !runs.has(Real))
}

/// Sets the states of the real pages of a mapping to what `of` returns for the start of their huge-page-sized block.
fn set_sizes(runs: &mut PageRuns, mapping: &Range<usize>, of: impl Fn(usize) -> PageState) {
    let block = huge_page_size().unwrap_or(page_size());
    runs.refine(&[Real], |run, refined| {
        let inside = run.range.start.max(mapping.start)..run.range.end.min(mapping.end);
        if inside.is_empty() {
            return refined.push(run.range.clone(), Real);
        }
        refined.push(run.range.start..inside.start, Real);
        for piece in pieces(&inside, block) {
            let state = of(piece.start / block * block);
            refined.push(piece, state);
        }
        refined.push(inside.end..run.range.end, Real);
    });
}

/// Returns the starts of the aligned blocks of a mapping in which every page is present, and not known to be the zero page.
fn full_blocks(table: Option<&PageTable>, mapping: &Mapping) -> Option<Vec<usize>> {
    let block = huge_page_size()?;
    let start = mapping.range.start.next_multiple_of(block);
    let range = start..(mapping.range.end / block * block).max(start);
    if range.len() > MAX_WALKED_SIZE {
        return None;
    }
    let (mut runs, presence) = read(table, std::slice::from_ref(&range));
    refine_zero_pages(&mut runs, table, presence);
    runs.refine(&[Real], |run, refined| refined.push(run.range.clone(), Present)); // so that they are one run
    let present = runs.iter().filter(|run| run.state == Present);
    let blocks = present.flat_map(|run| {
        let Range { start, end } = run.range;
        (start.next_multiple_of(block)..end).step_by(block).filter(move |at| at + block <= end)
    });
    (presence.is_some() && runs.is_complete()).then(|| blocks.collect())
}

/// Tells pages in the page cache, not touched by this process, from absent ones. Returns the source.
fn refine_cached(runs: &mut PageRuns, presence: Option<&'static str>) -> Option<&'static str> {
    if !runs.has(Absent) {
        return presence;
    }
    let Ok(mut files) = mappings(&runs.extent(), false) else { return None };
    // Files that the caller may not write are always reported present.
    files.retain(|file| file.writable && file.shared || may_ask_for_cache(&file.path, file.inode));
    let mut refused = false;
    runs.refine(&[Absent], |run, refined| {
        let mut at = run.range.start;
        for part in parts(&files, &run.range) {
            refined.push(at..part.start, Absent);
            at = part.end;
            for start in part.clone().step_by(BATCH * page_size()) {
                let mut there = [0; BATCH];
                let there = &mut there[..BATCH.min((part.end - start) / page_size())];
                refused |= in_memory(start, there).is_err();
                for (page, there) in (start..).step_by(page_size()).zip(there) {
                    refined.push(page..page + page_size(), if *there & 1 != 0 { Cached } else { Absent });
                }
            }
        }
        refined.push(at..run.range.end, Absent);
    });
    if refused {
        None
    } else if files.is_empty() {
        presence
    } else {
        Some("mincore")
    }
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

/// With more pieces than this, the gaps between them are included.
const MAX_PIECES: usize = 1 << 24;

/// Returns the addresses of the pages that the elements of an array lie on, as sorted and disjoint ranges of whole pages.
///
/// `address` is that of the first element, and `item` the size of an element; `shape` and `strides` (in bytes) are as in
/// NumPy. An empty array lies on no page.
///
/// # Errors
/// [`Errno::NO_MEMORY`] if there is no memory for the result.
pub fn footprint(address: usize, item: usize, shape: &[usize], strides: &[isize]) -> Result<Vec<Range<usize>>, Errno> {
    if item == 0 || shape.contains(&0) {
        return Ok(Vec::new());
    }
    let page = page_size();
    // Reverse negative strides: every axis runs upwards from the lowest element.
    let mut lowest = address;
    let mut axes = room_for(shape.len())?;
    for (&count, &stride) in shape.iter().zip(strides) {
        let reach = stride.unsigned_abs().saturating_mul(count - 1);
        if stride < 0 {
            lowest = lowest.saturating_sub(reach);
        }
        if reach > 0 {
            axes.push((stride.unsigned_abs(), count));
        }
    }
    axes.sort_unstable();
    // The axes of short strides form one piece, whose gaps are too small to skip a page.
    let mut run = item;
    let near = axes.iter().take_while(|(stride, count)| {
        let near = stride.saturating_sub(run) < page;
        run = if near { run.saturating_add(stride.saturating_mul(count - 1)) } else { run };
        near
    });
    let near = near.count();
    let (mut starts, mut whole) = (room_for(1)?, run);
    starts.push(lowest);
    for &(stride, count) in &axes[near..] {
        whole = whole.saturating_add(stride.saturating_mul(count - 1));
        if starts.len().saturating_mul(count) <= MAX_PIECES {
            let at = |n: usize| n.saturating_mul(stride);
            let mut all = room_for(starts.len() * count)?;
            all.extend((0..count).flat_map(|n| starts.iter().map(move |start| start.saturating_add(at(n)))));
            starts = all;
        } else {
            starts.clear();
            starts.push(lowest);
            run = whole;
        }
    }
    starts.sort_unstable();
    let last = usize::MAX / page * page; // strides may lead anywhere
    let end = |start: usize| start.saturating_add(run).min(last).next_multiple_of(page);
    merged(starts.into_iter().map(|start| start / page * page..end(start)))
}

/// Returns an empty vector with room for `count` values.
fn room_for<T>(count: usize) -> Result<Vec<T>, Errno> {
    let mut room_for = Vec::new();
    room_for.try_reserve_exact(count).map_err(|_| Errno::NO_MEMORY)?;
    Ok(room_for)
}

/// Merges ranges, sorted by their starts, that overlap or touch.
fn merged(ranges: impl Iterator<Item = Range<usize>>) -> Result<Vec<Range<usize>>, Errno> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match found.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => {
                found.try_reserve(1).map_err(|_| Errno::NO_MEMORY)?;
                found.push(range);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const AT: usize = 1 << 40;

    /// Returns the pages of every element, one by one.
    fn brute_force(address: usize, item: usize, shape: &[usize], strides: &[isize]) -> BTreeSet<usize> {
        let mut at = vec![address as isize];
        for (&count, &stride) in shape.iter().zip(strides) {
            at = (0..count as isize).flat_map(|n| at.iter().map(move |at| at + n * stride)).collect();
        }
        let pages = |at: &isize| *at as usize / page_size()..=(*at as usize + item - 1) / page_size();
        at.iter().flat_map(pages).collect()
    }

    fn pages(found: &[Range<usize>]) -> BTreeSet<usize> {
        found.iter().flat_map(|range| range.start / page_size()..range.end / page_size()).collect()
    }

    fn only(found: &[Range<usize>]) -> Range<usize> {
        assert_eq!(found.len(), 1);
        found[0].clone()
    }

    proptest! {
        #[test]
        fn agrees_with_brute_force(
            offset in 0usize..9000,
            item in 1usize..40,
            axes in proptest::collection::vec((1usize..9, -20_000isize..20_000), 0..4),
        ) {
            let (shape, strides): (Vec<_>, Vec<_>) = axes.into_iter().unzip();
            let found = footprint(AT + offset, item, &shape, &strides).unwrap();
            prop_assert_eq!(pages(&found), brute_force(AT + offset, item, &shape, &strides));
            prop_assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }

    #[test]
    fn strides_out_of_the_address_space() {
        footprint(AT, 8, &[1 << 40, 1 << 30], &[1 << 50, -1 << 60]).unwrap();
    }

    #[test]
    fn empty_arrays_lie_on_no_page() {
        assert!(footprint(AT, 8, &[3, 0], &[0, 8]).unwrap().is_empty());
        assert!(footprint(AT, 0, &[3], &[0]).unwrap().is_empty());
    }

    #[test]
    fn a_scalar_is_one_element() {
        assert_eq!(only(&footprint(AT + 8, 8, &[], &[]).unwrap()), AT..AT + page_size());
    }

    #[test]
    fn a_gibibyte_is_one_range() {
        assert_eq!(only(&footprint(AT + 16, 8, &[1 << 27], &[8]).unwrap()), AT..AT + (1 << 30) + page_size());
    }

    /// Gaps may be included, but no element may be missing.
    #[test]
    fn too_many_pieces() {
        let (count, stride) = (MAX_PIECES, 9 * page_size());
        let found = footprint(AT, 8, &[count, 2], &[stride as isize, stride as isize / 3]).unwrap();
        assert_eq!(only(&found), AT..AT + (count - 1) * stride + stride / 3 + page_size());
    }
}
