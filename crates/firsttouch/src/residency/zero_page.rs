//! The shared zero page, where the source of all other states does not tell it from memory.
//!
//! The entries of /proc/self/pagemap never do, and a scan before Linux 6.16 takes the huge zero page for any huge page.

use super::nodes::{each_node, step};
use super::runs::{Run, Runs, Source, State};
use crate::os::{Errno, PageTable, seen};

/// Asks the node of each page that is in doubt: the zero page has none. Who was asked.
pub fn refine(runs: &mut Runs, table: Option<&PageTable>, base: Source) -> Source {
    let mut asked = base;
    runs.refine(&[State::Present, State::Huge], |run, refined| {
        let mut done = run.range.start;
        let result = each_node(run.range.clone(), step(run), |pages, node| {
            done = pages.end;
            let (state, source) = match (node, run.state) {
                (code, _) if code == -Errno::BAD_ADDRESS.0 => (State::Zero, Source::MovePages),
                (0.., State::Present) => (State::Real, Source::MovePages),
                // Linux 6.1 to 6.5 say so of pages that AutoNUMA hides for a moment; it never hides the zero page.
                (code, State::Present) if code == -Errno::NOTHING_THERE.0 => (State::Real, Source::MovePages),
                _ => (run.state, run.source),
            };
            if source == Source::MovePages {
                asked = source;
            }
            refined.push(pages, state, source);
        });
        if result.is_err() {
            let left = Run { range: done..run.range.end, ..run.clone() };
            if left.state == State::Huge {
                alone(&left, table, refined);
            } else {
                refined.push(left.range, left.state, left.source);
            }
        }
    });
    if runs.has(State::Present) { Source::Nobody } else { asked }
}

/// Without nodes: what nobody else maps is not the zero page; of the others it isn't known.
fn alone(run: &Run, table: Option<&PageTable>, refined: &mut Runs) {
    let mut at = run.range.start;
    while at < run.range.end {
        let end = ((at / step(run) + 1) * step(run)).min(run.range.end);
        let mut entry = [0];
        let known = table.is_some_and(|table| table.entries(at, &mut entry).is_ok() && entry[0] & seen::EXCLUSIVE != 0);
        let state = if known { State::Huge } else { State::Present };
        refined.push(at..end, state, run.source);
        at = end;
    }
}
