//! Pages of files and of shared memory that are in memory, but that this process has not touched.

use super::base::each_in_memory;
use super::mappings::{Mapping, mappings};
use super::runs::{Runs, Source, State};
use crate::os::{MappingText, may_ask_for_cache};

/// Tells pages that are in the page cache from those that are nowhere; who was asked.
pub fn refine(runs: &mut Runs, base: Source) -> Source {
    let mut asked = base;
    let mut told: Option<Vec<Mapping>> = None;
    runs.refine(&[State::Absent], |run, refined| {
        asked = Source::Mincore;
        let mut there = Runs::default();
        let result = each_in_memory(run.range.clone(), |page, cached| {
            there.push(page, if cached { State::Cached } else { run.state }, run.source);
        });
        if result.is_err() || !there.has(State::Cached) {
            return refined.push(run.range.clone(), run.state, run.source);
        }
        // Of files that the caller may not write the kernel always says yes.
        let told = told.get_or_insert_with(|| {
            let mut found = mappings(MappingText::Short, &(0..usize::MAX)).unwrap_or_default();
            found.retain(|mapping| mapping.writes_through || may_ask_for_cache(&mapping.path, mapping.inode));
            found
        });
        let mut next = 0;
        for part in there.iter() {
            let mut at = part.range.start;
            while part.state == State::Cached && at < part.range.end {
                next += told[next..].partition_point(|mapping| mapping.range.end <= at);
                let Some(mapping) = told.get(next).filter(|mapping| mapping.range.start < part.range.end) else {
                    break;
                };
                let start = mapping.range.start.max(at);
                let end = mapping.range.end.min(part.range.end);
                refined.push(at..start, run.state, run.source);
                refined.push(start..end, State::Cached, Source::Mincore);
                at = end;
            }
            refined.push(at..part.range.end, run.state, run.source);
        }
    });
    asked
}
