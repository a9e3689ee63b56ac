//! The state of every page from the best source there is: PAGEMAP_SCAN, or the entries of /proc/self/pagemap, or
//! move_pages, or mincore. Each says less than the one before.

use super::nodes::each_node;
use super::runs::{Runs, Source, State};
use crate::os::{Errno, PageRegion, PageTable, has_swap, in_memory, page_size, seen};
use std::ops::Range;

/// Pages that are asked about in one call.
const AT_ONCE: usize = 4096;

/// The states of the pages of `ranges`, in order and apart, and who said so; the table of pages, where there is one.
pub fn look(ranges: &[Range<usize>]) -> (Runs, Source, Option<PageTable>) {
    let table = PageTable::open().ok();
    if let Some(open) = &table
        && let Some(near) = near(ranges)
        && let Ok(runs) = over(&near, |range, runs| scan(open, range, runs))
    {
        return (runs.inside(ranges), Source::Scan, table);
    }
    if let Some(open) = &table
        && let Ok(runs) = over(ranges, |range, runs| entries(open, range, runs))
    {
        return (runs, Source::Pagemap, table);
    }
    let gone = if has_swap() == Some(false) { State::Absent } else { State::Unknown };
    if let Ok(runs) = over(ranges, |range, runs| by_node(range, gone, runs)) {
        return (runs, Source::MovePages, None);
    }
    let ask = |range, runs: &mut Runs| {
        each_in_memory(range, |page, there| {
            runs.push(page, if there { State::Present } else { gone }, Source::Mincore);
        })
    };
    if let Ok(runs) = over(ranges, ask) {
        return (runs, Source::Mincore, None);
    }
    let mut runs = Runs::default();
    ranges.iter().for_each(|range| runs.push(range.clone(), State::Unknown, Source::Nobody));
    (runs, Source::Nobody, None)
}

/// One source for everything, or none of it.
fn over(
    ranges: &[Range<usize>],
    mut ask: impl FnMut(Range<usize>, &mut Runs) -> Result<(), Errno>,
) -> Result<Runs, Errno> {
    let mut runs = Runs::default();
    ranges.iter().try_for_each(|range| ask(range.clone(), &mut runs))?;
    Ok(runs)
}

/// Ranges with what lies between where that is little: looking at more pages is cheaper than more calls.
fn near(ranges: &[Range<usize>]) -> Option<Vec<Range<usize>>> {
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

fn scan(table: &PageTable, range: Range<usize>, runs: &mut Runs) -> Result<(), Errno> {
    let mut regions = [PageRegion::default(); 512];
    let (mut at, mut behind) = (range.start, range.start);
    while at < range.end {
        let (count, reached) = table.scan(at, range.end, &mut regions)?;
        if reached <= at {
            return Err(Errno::UNSUPPORTED); // no progress: not the call we know
        }
        at = reached;
        for region in &regions[..count] {
            let (start, end) = (region.start.max(behind), region.end.min(range.end));
            let state = match region.seen {
                seen if seen & seen::PRESENT == 0 => State::Swapped,
                seen if seen & seen::ZERO != 0 => State::Zero,
                seen if seen & seen::HUGE != 0 => State::Huge,
                _ => State::Small,
            };
            runs.push(behind..start, State::Absent, Source::Scan);
            runs.push(start..end, state, Source::Scan);
            behind = end.max(behind);
        }
    }
    runs.push(behind..range.end, State::Absent, Source::Scan);
    Ok(())
}

fn entries(table: &PageTable, range: Range<usize>, runs: &mut Runs) -> Result<(), Errno> {
    each_entry(table, range, |page, seen| {
        let state = match seen {
            seen if seen & seen::PRESENT == 0 && seen & seen::SWAPPED != 0 => State::Swapped,
            seen if seen & seen::PRESENT == 0 => State::Absent,
            // The zero page is never anybody's alone.
            seen if seen & seen::EXCLUSIVE != 0 => State::Real,
            _ => State::Present,
        };
        runs.push(page, state, Source::Pagemap);
    })
}

/// Every page's entry, in order.
pub fn each_entry(
    table: &PageTable,
    range: Range<usize>,
    mut visit: impl FnMut(Range<usize>, u64),
) -> Result<(), Errno> {
    let mut buffer = vec![0; AT_ONCE.min(range.len() / page_size())];
    for start in range.clone().step_by(AT_ONCE * page_size()) {
        let seen = &mut buffer[..AT_ONCE.min((range.end - start) / page_size())];
        table.entries(start, seen)?;
        for (n, &seen) in seen.iter().enumerate() {
            let page = start + n * page_size();
            visit(page..page + page_size(), seen);
        }
    }
    Ok(())
}

fn by_node(range: Range<usize>, gone: State, runs: &mut Runs) -> Result<(), Errno> {
    each_node(range, page_size(), |page, node| {
        let state = match node {
            0.. => State::Real,
            code if code == -Errno::BAD_ADDRESS.0 => State::Zero,
            code if code == -Errno::NOTHING_THERE.0 => gone,
            _ => State::Unknown,
        };
        runs.push(page, state, Source::MovePages);
    })
}

/// For every page of a range, in order, whether it is in memory as mincore knows it.
pub fn each_in_memory(range: Range<usize>, mut visit: impl FnMut(Range<usize>, bool)) -> Result<(), Errno> {
    let mut buffer = vec![0; (16 * AT_ONCE).min(range.len() / page_size())];
    for start in range.clone().step_by(16 * AT_ONCE * page_size()) {
        let count = buffer.len().min((range.end - start) / page_size());
        in_memory(start, &mut buffer[..count])?;
        for (n, &there) in buffer[..count].iter().enumerate() {
            let page = start + n * page_size();
            visit(page..page + page_size(), there & 1 != 0);
        }
    }
    Ok(())
}
