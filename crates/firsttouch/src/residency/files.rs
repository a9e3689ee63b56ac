//! Pages of files and of shared memory that are in memory, but that this process has not touched.

use super::mappings::{Mapping, mappings};
use super::runs::{Run, Runs, Source, State};
use crate::os::{Errno, MappingText, in_memory, may_ask_for_cache, page_size};

/// Pages that are asked about in one call.
const AT_ONCE: usize = 1 << 16;

/// What mincore says of some pages in a row. One call for many short runs is cheaper than a call for each.
#[derive(Default)]
struct Window {
    start: usize,
    there: Vec<u8>,
    /// The kernel does not answer at all.
    refused: bool,
}

impl Window {
    /// Whether each page of the front part of `run`, as far as one window goes, is in memory.
    fn of(&mut self, run: &Run, from: usize, last: usize) -> &[u8] {
        let (run_end, page) = (run.range.end, page_size());
        if !(self.start..self.start + self.there.len() * page).contains(&from) {
            self.start = from;
            let end = last.min(from + AT_ONCE * page);
            // What lies between may not be mapped at all: then each run is asked about alone.
            if !self.ask(end) && !self.ask(end.min(run_end)) {
                self.there.fill(0);
            }
        }
        let first = (from - self.start) / page;
        let end = self.there.len().min((run_end - self.start) / page);
        &self.there[first..end]
    }

    fn ask(&mut self, end: usize) -> bool {
        self.there.resize((end - self.start) / page_size(), 0);
        let result = in_memory(self.start, &mut self.there);
        self.refused |= result.is_err_and(|error| error != Errno::NO_MEMORY);
        result.is_ok()
    }
}

/// The mappings about which mincore tells the truth: of files that the caller may not write it always says yes.
fn told() -> Vec<Mapping> {
    let mut found = mappings(MappingText::Short, &(0..usize::MAX)).unwrap_or_default();
    found.retain(|mapping| mapping.writes_through || may_ask_for_cache(&mapping.path, mapping.inode));
    found
}

/// Tells pages that are in the page cache from those that are nowhere; who was asked.
pub fn refine(runs: &mut Runs, base: Source) -> Source {
    let last = runs.iter().last().map_or(0, |run| run.range.end);
    if !runs.has(State::Absent) {
        return base;
    }
    let (mut window, mut mappings) = (Window::default(), None);
    runs.refine(&[State::Absent], |run, refined| {
        let mut at = run.range.start;
        while at < run.range.end {
            let there = window.of(run, at, last);
            let cached = there[0] & 1 != 0;
            let same = there.iter().take_while(|&&each| (each & 1 != 0) == cached).count();
            let end = at + same * page_size();
            if cached {
                mark(at, end, run, mappings.get_or_insert_with(told), refined);
            } else {
                refined.push(at..end, run.state, run.source);
            }
            at = end;
        }
    });
    if window.refused { Source::Nobody } else { Source::Mincore }
}

/// Pages that mincore says are there, which is to be believed inside of `told` only.
fn mark(start: usize, end: usize, run: &Run, told: &[Mapping], refined: &mut Runs) {
    let mut at = start;
    let first = told.partition_point(|mapping| mapping.range.end <= at);
    for mapping in told[first..].iter().take_while(|mapping| mapping.range.start < end) {
        refined.push(at..mapping.range.start.max(at), run.state, run.source);
        at = mapping.range.end.min(end);
        refined.push(mapping.range.start.max(start)..at, State::Cached, Source::Mincore);
    }
    refined.push(at..end, run.state, run.source);
}
