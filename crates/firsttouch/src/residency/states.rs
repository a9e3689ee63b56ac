//! The state of every page from the best source available, refined by distinctions that it does not make: `PAGEMAP_SCAN`, the
//! entries of `/proc/self/pagemap`, `move_pages`, or `mincore`. Each tells less than the one before. Also the NUMA nodes of
//! pages.

use super::ranges::{Mapping, mappings};
use super::{PageRun, PageRuns, PageState, StateSource};
use crate::os::{
    Errno, MappingText, PageRegion, PageTable, has_swap, huge_page_size, in_memory, may_ask_for_cache, nodes_of,
    only_node, page_size, seen, thread_processors,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::thread;

/// Pages queried by one call.
const BATCH: usize = 4096;

/// Returns the states of the pages of `ranges`, which are sorted and disjoint, and their source; also the page table, if
/// it is accessible.
pub fn query_states(ranges: &[Range<usize>]) -> (PageRuns, StateSource, Option<PageTable>) {
    let table = PageTable::open().ok();
    if let Some(open) = &table
        && let Some(merged) = merge_near(ranges)
        && let Ok(runs) = query_all(&merged, |range, runs| scan(open, range, runs))
    {
        return (runs.inside(ranges), StateSource::Scan, table);
    }
    if let Some(open) = &table
        && let Ok(runs) = query_all(ranges, |range, runs| query_entries(open, range, runs))
    {
        return (runs, StateSource::Pagemap, table);
    }
    let gone = if has_swap() == Some(false) { PageState::Absent } else { PageState::Unknown };
    if let Ok(runs) = query_all(ranges, |range, runs| query_nodes(range, gone, runs)) {
        return (runs, StateSource::MovePages, None);
    }
    let query_one = |range, runs: &mut PageRuns| {
        visit_mincore(range, |page, there| {
            runs.push(page, if there { PageState::Present } else { gone }, StateSource::Mincore);
        })
    };
    if let Ok(runs) = query_all(ranges, query_one) {
        return (runs, StateSource::Mincore, None);
    }
    let mut runs = PageRuns::default();
    ranges.iter().for_each(|range| runs.push(range.clone(), PageState::Unknown, StateSource::None));
    (runs, StateSource::None, None)
}

/// Queries all ranges from one source; fails if it fails for any.
fn query_all(
    ranges: &[Range<usize>],
    mut query_one: impl FnMut(Range<usize>, &mut PageRuns) -> Result<(), Errno>,
) -> Result<PageRuns, Errno> {
    let mut runs = PageRuns::default();
    ranges.iter().try_for_each(|range| query_one(range.clone(), &mut runs))?;
    Ok(runs)
}

/// Merges ranges with small gaps between them: scanning more pages is cheaper than more calls. `None` without memory for
/// that.
fn merge_near(ranges: &[Range<usize>]) -> Option<Vec<Range<usize>>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    found.try_reserve_exact(ranges.len()).ok()?;
    for range in ranges {
        match found.last_mut() {
            Some(last) if range.start - last.end < 64 * page_size() => last.end = range.end,
            _ => found.push(range.clone()),
        }
    }
    Some(found)
}

fn scan(table: &PageTable, range: Range<usize>, runs: &mut PageRuns) -> Result<(), Errno> {
    let mut regions = [PageRegion::default(); 512];
    let (mut at, mut behind) = (range.start, range.start);
    while at < range.end {
        let (count, reached) = table.scan(at, range.end, &mut regions)?;
        if reached <= at {
            return Err(Errno::UNSUPPORTED); // no progress: an unknown variant of the call
        }
        at = reached;
        for region in &regions[..count] {
            let (start, end) = (region.start.max(behind), region.end.min(range.end));
            let state = match region.seen {
                seen if seen & seen::PRESENT == 0 => PageState::Swapped,
                seen if seen & seen::ZERO != 0 => PageState::Zero,
                seen if seen & seen::HUGE != 0 => PageState::Huge,
                _ => PageState::Small,
            };
            runs.push(behind..start, PageState::Absent, StateSource::Scan);
            runs.push(start..end, state, StateSource::Scan);
            behind = end.max(behind);
        }
    }
    runs.push(behind..range.end, PageState::Absent, StateSource::Scan);
    Ok(())
}

fn query_entries(table: &PageTable, range: Range<usize>, runs: &mut PageRuns) -> Result<(), Errno> {
    visit_entries(table, range, |page, seen| {
        let state = match seen {
            seen if seen & seen::PRESENT == 0 && seen & seen::SWAPPED != 0 => PageState::Swapped,
            seen if seen & seen::PRESENT == 0 => PageState::Absent,
            // The zero page is never mapped exclusively.
            seen if seen & seen::EXCLUSIVE != 0 => PageState::Real,
            _ => PageState::Present,
        };
        runs.push(page, state, StateSource::Pagemap);
    })
}

/// Visits the page table entry of every page, in order.
pub fn visit_entries(
    table: &PageTable,
    range: Range<usize>,
    mut visit: impl FnMut(Range<usize>, u64),
) -> Result<(), Errno> {
    let mut buffer = vec![0; BATCH.min(range.len() / page_size())];
    for start in range.clone().step_by(BATCH * page_size()) {
        let seen = &mut buffer[..BATCH.min((range.end - start) / page_size())];
        table.entries(start, seen)?;
        for (n, &seen) in seen.iter().enumerate() {
            let page = start + n * page_size();
            visit(page..page + page_size(), seen);
        }
    }
    Ok(())
}

fn query_nodes(range: Range<usize>, gone: PageState, runs: &mut PageRuns) -> Result<(), Errno> {
    visit_nodes_of_range(range, page_size(), |page, node| {
        let state = match node {
            0.. => PageState::Real,
            code if code == -Errno::BAD_ADDRESS.0 => PageState::Zero,
            code if code == -Errno::NOTHING_THERE.0 => gone,
            _ => PageState::Unknown,
        };
        runs.push(page, state, StateSource::MovePages);
    })
}

/// Visits every page of a range, in order, with whether `mincore` reports it as present.
fn visit_mincore(range: Range<usize>, mut visit: impl FnMut(Range<usize>, bool)) -> Result<(), Errno> {
    let mut buffer = vec![0; (16 * BATCH).min(range.len() / page_size())];
    for start in range.clone().step_by(16 * BATCH * page_size()) {
        let count = buffer.len().min((range.end - start) / page_size());
        in_memory(start, &mut buffer[..count])?;
        for (n, &there) in buffer[..count].iter().enumerate() {
            let page = start + n * page_size();
            visit(page..page + page_size(), there & 1 != 0);
        }
    }
    Ok(())
}

/// Tells the shared zero page from memory, and returns the source. `/proc/self/pagemap` never makes the distinction, and a
/// scan before Linux 6.16 reports the huge zero page as a huge page. `move_pages` does, as the zero page has no node.
pub fn refine_zero_pages(runs: &mut PageRuns, table: Option<&PageTable>, presence: StateSource) -> StateSource {
    let mut source_used = presence;
    runs.refine(&[PageState::Present, PageState::Huge], |run, refined| {
        let mut done = run.range.start;
        let result = visit_nodes_of_range(run.range.clone(), step(run), |pages, node| {
            done = pages.end;
            let (state, source) = match (node, run.state) {
                (code, _) if code == -Errno::BAD_ADDRESS.0 => (PageState::Zero, StateSource::MovePages),
                (0.., PageState::Present) => (PageState::Real, StateSource::MovePages),
                // Linux 6.1 to 6.5 report so for pages hidden by automatic NUMA balancing, which are never the zero page.
                (code, PageState::Present) if code == -Errno::NOTHING_THERE.0 => {
                    (PageState::Real, StateSource::MovePages)
                }
                _ => (run.state, run.source),
            };
            if source == StateSource::MovePages {
                source_used = source;
            }
            refined.push(pages, state, source);
        });
        if result.is_err() {
            let rest = PageRun { range: done..run.range.end, ..run.clone() };
            if rest.state == PageState::Huge {
                refine_zero_by_entries(&rest, table, refined);
            } else {
                refined.push(rest.range, rest.state, rest.source);
            }
        }
    });
    if runs.has(PageState::Present) { StateSource::None } else { source_used }
}

/// Without nodes: a page that is mapped exclusively is not the zero page; others may or may not be.
fn refine_zero_by_entries(run: &PageRun, table: Option<&PageTable>, refined: &mut PageRuns) {
    let mut at = run.range.start;
    while at < run.range.end {
        let end = ((at / step(run) + 1) * step(run)).min(run.range.end);
        let mut entry = [0];
        let exclusive =
            table.is_some_and(|table| table.entries(at, &mut entry).is_ok() && entry[0] & seen::EXCLUSIVE != 0);
        let state = if exclusive { PageState::Huge } else { PageState::Present };
        refined.push(at..end, state, run.source);
        at = end;
    }
}

/// Larger mappings are not walked: reading their entries would take a tenth of a second.
const MAX_WALKED_SIZE: usize = 64 << 30;

/// Determines the sizes of real pages, where they are certain, from the huge pages that `/proc/self/smaps` counts in each
/// mapping. Returns the source.
pub fn refine_sizes(runs: &mut PageRuns, table: Option<&PageTable>, presence: StateSource) -> StateSource {
    if !runs.has(PageState::Real) {
        return presence;
    }
    let ends = |run: &PageRun| run.range.clone();
    let all = runs.iter().next().map_or(0, |run| ends(run).start)..runs.iter().last().map_or(0, |run| ends(run).end);
    let Ok(found) = mappings(MappingText::Long, &all) else { return StateSource::None };
    for mapping in &found {
        if mapping.page > page_size() {
            set_sizes(runs, &mapping.range, |_| PageState::Huge);
        } else if mapping.huge == 0 {
            set_sizes(runs, &mapping.range, |_| PageState::Small);
        } else if let Some(blocks) = table.and_then(|table| full_blocks(table, mapping).ok()) {
            // Every huge page fills a block; if there are as many as full blocks, each full block is one.
            let huge = blocks.len() * huge_page_size().unwrap_or(0) == mapping.huge;
            set_sizes(runs, &mapping.range, |block| match blocks.binary_search(&block) {
                Err(_) => PageState::Small,
                Ok(_) if huge => PageState::Huge,
                Ok(_) => PageState::Real,
            });
        }
    }
    if runs.has(PageState::Real) { StateSource::None } else { StateSource::Smaps }
}

/// Sets the states of the real pages of a mapping to what `of` returns for the start of their huge-page-sized block.
fn set_sizes(runs: &mut PageRuns, mapping: &Range<usize>, of: impl Fn(usize) -> PageState) {
    let block = huge_page_size().unwrap_or(page_size());
    runs.refine(&[PageState::Real], |run, refined| {
        let inside = run.range.start.max(mapping.start)..run.range.end.min(mapping.end);
        if inside.is_empty() {
            return refined.push(run.range.clone(), run.state, run.source);
        }
        refined.push(run.range.start..inside.start, run.state, run.source);
        let mut at = inside.start;
        while at < inside.end {
            let (first, end) = (at / block * block, (at / block + 1) * block);
            let state = of(first);
            let source = if state == PageState::Real { run.source } else { StateSource::Smaps };
            refined.push(at..end.min(inside.end), state, source);
            at = end;
        }
        refined.push(inside.end..run.range.end, run.state, run.source);
    });
}

/// Returns the starts of the aligned blocks of a mapping in which every page is real.
fn full_blocks(table: &PageTable, mapping: &Mapping) -> Result<Vec<usize>, Errno> {
    let block = huge_page_size().ok_or(Errno::UNSUPPORTED)?;
    let range = mapping.range.start.next_multiple_of(block)..mapping.range.end / block * block;
    if range.len() > MAX_WALKED_SIZE {
        return Err(Errno::UNSUPPORTED);
    }
    let (mut blocks, mut full, mut exclusive) = (Vec::new(), true, true);
    visit_entries(table, range.start..range.end.max(range.start), |page, seen| {
        full &= seen & seen::PRESENT != 0;
        exclusive &= seen & seen::EXCLUSIVE != 0;
        if page.end % block == 0 {
            let first = page.end - block;
            if full && (exclusive || is_not_zero_page(first)) {
                blocks.push(first);
            }
            (full, exclusive) = (true, true);
        }
    })?;
    Ok(blocks)
}

/// Returns whether a page is not the zero page. If that is not known it counts as real, and the counts do not match.
fn is_not_zero_page(page: usize) -> bool {
    let mut zero = false;
    let result =
        visit_nodes_of_range(page..page + page_size(), page_size(), |_, node| zero = node == -Errno::BAD_ADDRESS.0);
    result.is_err() || !zero
}

/// Pages that `mincore` is asked about in one call.
const MINCORE_BATCH: usize = 1 << 16;

/// The result of `mincore` for some adjacent pages. One call for many short runs is cheaper than one for each.
#[derive(Default)]
struct MincoreWindow {
    start: usize,
    present: Vec<u8>,
    /// Whether the kernel refused to answer.
    refused: bool,
}

impl MincoreWindow {
    /// Returns whether the pages of `run` are present, from `from` on and as far as the window reaches.
    fn get(&mut self, run: &PageRun, from: usize, last: usize) -> &[u8] {
        let (run_end, page) = (run.range.end, page_size());
        if !(self.start..self.start + self.present.len() * page).contains(&from) {
            self.start = from;
            let end = last.min(from + MINCORE_BATCH * page);
            // The gap after the run may be unmapped; then only the run is queried.
            if !self.query(end) && !self.query(end.min(run_end)) {
                self.present.fill(0);
            }
        }
        let first = (from - self.start) / page;
        let end = self.present.len().min((run_end - self.start) / page);
        &self.present[first..end]
    }

    fn query(&mut self, end: usize) -> bool {
        self.present.resize((end - self.start) / page_size(), 0);
        let result = in_memory(self.start, &mut self.present);
        self.refused |= result.is_err_and(|error| error != Errno::NO_MEMORY);
        result.is_ok()
    }
}

/// Returns the mappings for which `mincore` is truthful: files that the caller may not write are always reported present.
fn truthful_mappings() -> Vec<Mapping> {
    let mut found = mappings(MappingText::Short, &(0..usize::MAX)).unwrap_or_default();
    found.retain(|mapping| mapping.writes_through || may_ask_for_cache(&mapping.path, mapping.inode));
    found
}

/// Tells pages in the page cache, not touched by this process, from absent ones. Returns the source.
pub fn refine_cached(runs: &mut PageRuns, presence: StateSource) -> StateSource {
    let last = runs.iter().last().map_or(0, |run| run.range.end);
    if !runs.has(PageState::Absent) {
        return presence;
    }
    let (mut window, mut mappings) = (MincoreWindow::default(), None);
    runs.refine(&[PageState::Absent], |run, refined| {
        let mut at = run.range.start;
        while at < run.range.end {
            let present = window.get(run, at, last);
            let cached = present[0] & 1 != 0;
            let same = present.iter().take_while(|&&each| (each & 1 != 0) == cached).count();
            let end = at + same * page_size();
            if cached {
                push_cached(at, end, run, mappings.get_or_insert_with(truthful_mappings), refined);
            } else {
                refined.push(at..end, run.state, run.source);
            }
            at = end;
        }
    });
    if window.refused { StateSource::None } else { StateSource::Mincore }
}

/// Pushes pages that `mincore` reports as present, which is true inside the `truthful` mappings only.
fn push_cached(start: usize, end: usize, run: &PageRun, truthful: &[Mapping], refined: &mut PageRuns) {
    let mut at = start;
    let first = truthful.partition_point(|mapping| mapping.range.end <= at);
    for mapping in truthful[first..].iter().take_while(|mapping| mapping.range.start < end) {
        refined.push(at..mapping.range.start.max(at), run.state, run.source);
        at = mapping.range.end.min(end);
        refined.push(mapping.range.start.max(start)..at, PageState::Cached, StateSource::Mincore);
    }
    refined.push(at..end, run.state, run.source);
}

/// Pages whose nodes are buffered at a time.
const SLICE: usize = 1 << 18;
/// Pages that justify another thread.
const PAGES_PER_THREAD: usize = 1 << 14;
const MAX_THREADS: usize = 8;
const STACK_SIZE: usize = 128 << 10;

/// Visits the pages of `range` with their nodes, adjacent pages on the same node together. One page in every `step` bytes
/// is queried, and stands for all of them.
pub fn visit_nodes_of_range(
    range: Range<usize>,
    step: usize,
    mut visit: impl FnMut(Range<usize>, i32),
) -> Result<(), Errno> {
    let mut nodes = Vec::new();
    // Where there is no memory for so many, they are queried by the batch.
    let slice = if nodes.try_reserve_exact(SLICE.min(range.len() / step + 2)).is_ok() { SLICE } else { BATCH };
    let mut at = range.start;
    while at < range.end {
        let end = ((at / step + slice) * step).min(range.end);
        nodes.resize((end - 1) / step - at / step + 1, 0);
        query_nodes_of(at, step, &mut nodes)?;
        let edge = |page: usize| if page == 0 { at } else { ((at / step + page) * step).min(end) };
        let mut first = 0;
        for next in 1..=nodes.len() {
            if next == nodes.len() || nodes[next] != nodes[first] {
                visit(edge(first)..edge(next), nodes[first]);
                first = next;
            }
        }
        at = end;
    }
    Ok(())
}

/// Queries the nodes of pages `step` bytes apart, from `start` on. Uses several threads for many pages, as each page takes
/// the kernel about 200 ns [measured].
fn query_nodes_of(start: usize, step: usize, nodes: &mut [i32]) -> Result<(), Errno> {
    let processors = thread_processors().map_or(1, |set| set.len());
    let threads = (nodes.len() / PAGES_PER_THREAD).clamp(1, processors.clamp(1, MAX_THREADS));
    let share = nodes.len().div_ceil(threads);
    let part = |first: usize, nodes: &mut [i32]| {
        let mut addresses = Vec::with_capacity(BATCH);
        for (turn, nodes) in nodes.chunks_mut(BATCH).enumerate() {
            let first = first + turn * BATCH;
            addresses.clear();
            addresses.extend((first..first + nodes.len()).map(|page| start.max((start / step + page) * step)));
            nodes_of(&addresses, nodes)?;
        }
        Ok(())
    };
    if threads == 1 {
        return part(0, nodes);
    }
    let found = thread::scope(|scope| {
        let helpers: Vec<_> = nodes
            .chunks_mut(share)
            .enumerate()
            .map(|(at, nodes)| {
                thread::Builder::new().stack_size(STACK_SIZE).spawn_scoped(scope, move || part(at * share, nodes))
            })
            .collect();
        helpers.into_iter().try_for_each(|helper| match helper {
            Ok(helper) => helper.join().unwrap_or(Err(Errno::UNSUPPORTED)),
            Err(_) => Err(Errno::AGAIN),
        })
    });
    if found == Err(Errno::AGAIN) { part(0, nodes) } else { found } // threads cannot be started
}

/// Returns how many bytes of a run are known to lie on one node: a huge page, or a base page.
pub fn step(run: &PageRun) -> usize {
    // Other architectures have huge pages smaller than the default.
    let known = run.state == PageState::Huge && cfg!(target_arch = "x86_64");
    huge_page_size().filter(|_| known).unwrap_or(page_size())
}

/// Visits the real pages of `runs`, in order, with their nodes, and returns the source. The node is negative where the
/// kernel tells none: automatic NUMA balancing hides pages (Linux 6.1 to 6.5), or the pages have left memory meanwhile.
///
/// # Errors
/// If the kernel refuses to tell.
pub fn visit_nodes(runs: &PageRuns, mut visit: impl FnMut(Range<usize>, i32)) -> Result<&'static str, Errno> {
    let real = || runs.iter().filter(|run| run.state.is_real());
    if let Some(node) = only_node() {
        real().for_each(|run| visit(run.range.clone(), node as i32));
        return Ok("/sys/devices/system/node/has_memory: one node");
    }
    for run in real() {
        visit_nodes_of_range(run.range.clone(), step(run), &mut visit)?;
    }
    Ok("move_pages")
}

/// Returns the bytes of the real pages of `runs` by node, if known, and the source. Node -1 stands for pages whose node the
/// kernel does not tell.
pub fn bytes_by_node(runs: &PageRuns) -> (Option<BTreeMap<i32, usize>>, &'static str) {
    let mut bytes = BTreeMap::new();
    let source = visit_nodes(runs, |pages, node| {
        *bytes.entry(node.max(-1)).or_insert(0) += pages.len();
    });
    match source {
        // Pages that may or may not be real could lie on any node.
        Ok(source) if !runs.has(PageState::Present) && !runs.has(PageState::Unknown) => (Some(bytes), source),
        Ok(_) => (None, "not known: it is not known which pages are real"),
        Err(_) => (None, "not known: move_pages is refused here"),
    }
}
