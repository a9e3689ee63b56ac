//! Small or huge, where no scan tells it: from what /proc/self/smaps counts in each mapping.

use super::base::each_entry;
use super::mappings::{Mapping, mappings};
use super::nodes::each_node;
use super::runs::{Run, Runs, Source, State};
use crate::os::{Errno, MappingText, PageTable, huge_page_size, page_size, seen};
use std::ops::Range;

/// A mapping larger than this is not walked: its entries would take a tenth of a second.
const LARGEST: usize = 64 << 30;

/// Finds out the size of real pages where it can be known for certain; who was asked.
pub fn refine(runs: &mut Runs, table: Option<&PageTable>, base: Source) -> Source {
    if !runs.has(State::Real) {
        return base;
    }
    let ends = |run: &Run| run.range.clone();
    let all = runs.iter().next().map_or(0, |run| ends(run).start)..runs.iter().last().map_or(0, |run| ends(run).end);
    let Ok(found) = mappings(MappingText::Long, &all) else { return Source::Nobody };
    for mapping in &found {
        if mapping.page > page_size() {
            set(runs, &mapping.range, |_| State::Huge);
        } else if mapping.huge == 0 {
            set(runs, &mapping.range, |_| State::Small);
        } else if let Some(blocks) = table.and_then(|table| full_blocks(table, mapping).ok()) {
            // Every huge page fills a block; where there are as many as full blocks, each full block is one.
            let huge = blocks.len() * huge_page_size().unwrap_or(0) == mapping.huge;
            set(runs, &mapping.range, |block| match blocks.binary_search(&block) {
                Err(_) => State::Small,
                Ok(_) if huge => State::Huge,
                Ok(_) => State::Real,
            });
        }
    }
    if runs.has(State::Real) { Source::Nobody } else { Source::Smaps }
}

/// Gives real pages of a mapping the size that `of` tells of their block, by where it begins.
fn set(runs: &mut Runs, mapping: &Range<usize>, of: impl Fn(usize) -> State) {
    let block = huge_page_size().unwrap_or(page_size());
    runs.refine(&[State::Real], |run, refined| {
        let inside = run.range.start.max(mapping.start)..run.range.end.min(mapping.end);
        if inside.is_empty() {
            return refined.push(run.range.clone(), run.state, run.source);
        }
        refined.push(run.range.start..inside.start, run.state, run.source);
        let mut at = inside.start;
        while at < inside.end {
            let (first, end) = (at / block * block, (at / block + 1) * block);
            let state = of(first);
            let source = if state == State::Real { run.source } else { Source::Smaps };
            refined.push(at..end.min(inside.end), state, source);
            at = end;
        }
        refined.push(inside.end..run.range.end, run.state, run.source);
    });
}

/// The aligned blocks of a mapping in which every page is real: where each begins, in order.
fn full_blocks(table: &PageTable, mapping: &Mapping) -> Result<Vec<usize>, Errno> {
    let block = huge_page_size().ok_or(Errno::UNSUPPORTED)?;
    let range = mapping.range.start.next_multiple_of(block)..mapping.range.end / block * block;
    if range.len() > LARGEST {
        return Err(Errno::UNSUPPORTED);
    }
    let (mut blocks, mut full, mut alone) = (Vec::new(), true, true);
    each_entry(table, range.start..range.end.max(range.start), |page, seen| {
        full &= seen & seen::PRESENT != 0;
        alone &= seen & seen::EXCLUSIVE != 0;
        if page.end % block == 0 {
            let first = page.end - block;
            if full && (alone || is_real(first)) {
                blocks.push(first);
            }
            (full, alone) = (true, true);
        }
    })?;
    Ok(blocks)
}

/// Whether a page is not the zero page; for certain, or it counts as real, and then the counts don't fit.
fn is_real(page: usize) -> bool {
    let mut zero = false;
    let asked = each_node(page..page + page_size(), page_size(), |_, node| zero = node == -Errno::BAD_ADDRESS.0);
    asked.is_err() || !zero
}
