//! Determines the state of every page from the best source available: `PAGEMAP_SCAN`, the entries of
//! `/proc/self/pagemap`, `move_pages`, or `mincore`. Each tells less than the one before.

use super::nodes::visit_nodes_of_range;
use super::runs::{PageRuns, PageState, StateSource};
use crate::os::{Errno, PageRegion, PageTable, has_swap, in_memory, page_size, seen};
use std::ops::Range;

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
