//! How much of some pages is locked into memory.

use super::mappings::mappings;
use super::runs::{Runs, State};
use crate::os::{MappingText, locks_memory};

/// Bytes of pages in memory that are locked, where that is known, and who said so.
pub fn bytes(runs: &Runs) -> (Option<usize>, &'static str) {
    if locks_memory() == Some(false) {
        return (Some(0), "VmLck of /proc/self/status");
    }
    let (Some(first), Some(last)) = (runs.iter().next(), runs.iter().last()) else {
        return (Some(0), "no pages");
    };
    let Ok(mut found) = mappings(MappingText::Long, &(first.range.start..last.range.end)) else {
        return (None, "not known: /proc/self/smaps can't be read");
    };
    found.retain(|mapping| mapping.locked);
    if runs.has(State::Unknown) && !found.is_empty() {
        return (None, "not known, as it is not known which pages are in memory");
    }
    let mut bytes = 0;
    let mut mappings = found.iter().peekable();
    for run in runs.iter().filter(|run| run.state.is_real() || matches!(run.state, State::Zero | State::Present)) {
        while let Some(mapping) = mappings.peek() {
            let end = mapping.range.end.min(run.range.end);
            bytes += end.saturating_sub(mapping.range.start.max(run.range.start));
            if mapping.range.end > run.range.end {
                break;
            }
            mappings.next();
        }
    }
    (Some(bytes), "VmFlags of /proc/self/smaps")
}
