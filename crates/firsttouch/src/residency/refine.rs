//! Refines the states of pages by distinctions that their first source does not make: the shared zero page, page sizes,
//! and the page cache.

use super::mappings::{Mapping, mappings};
use super::nodes::{step, visit_nodes_of_range};
use super::runs::{PageRun, PageRuns, PageState, StateSource};
use super::sources::visit_entries;
use crate::os::{Errno, MappingText, PageTable, huge_page_size, in_memory, may_ask_for_cache, page_size, seen};
use std::ops::Range;

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
