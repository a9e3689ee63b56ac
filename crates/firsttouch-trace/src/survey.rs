//! A first pass over a trace, which validates it and collects what a replay has to know in advance.

use crate::event::{BlockDetail, EventKind, Metadata, Totals};
use crate::format::TraceError;
use crate::reader::Reader;
use std::io::Read;

/// Marks a block whose resident pages were not recorded.
const UNKNOWN: u32 = u32::MAX;

/// The result of reading a whole trace.
#[derive(Debug, Default)]
pub struct Survey {
    /// The metadata of the header and of the end mark.
    pub metadata: Metadata,
    /// Whether the trace has its end mark.
    pub complete: bool,
    /// The totals.
    pub totals: Totals,
    /// Time of the last event in microseconds.
    pub micros: u64,
    /// Resident pages at the end of each large block, in the order of allocation.
    resident_at_end: Vec<u32>,
    /// Number of the last event of each thread, counted from 1.
    pub(crate) last_events: Vec<u64>,
}

impl Survey {
    /// Reads a whole trace; with `allow_truncated`, as much of it as there is.
    ///
    /// # Errors
    /// If the trace cannot be read, or is truncated and that is not allowed.
    pub fn new(source: impl Read, allow_truncated: bool) -> Result<Self, TraceError> {
        let mut reader = Reader::new(source)?;
        let mut survey = Self { metadata: reader.metadata().clone(), ..Self::default() };
        // By block number, the index in `resident_at_end`.
        let mut indices: Vec<Option<usize>> = Vec::new();
        while let Some(event) = reader.next_event(allow_truncated)? {
            survey.micros = event.micros;
            match event.kind {
                EventKind::Allocate { block, detail, .. } => {
                    let index = detail.map(|_| survey.resident_at_end.len());
                    survey.resident_at_end.extend(index.map(|_| UNKNOWN));
                    indices.resize(indices.len().max(block as usize + 1), None);
                    indices[block as usize] = index;
                }
                EventKind::Free { block, resident: Some(resident) } | EventKind::Live { block, resident } => {
                    if let Some(index) = indices[block as usize] {
                        survey.resident_at_end[index] = resident.min(u64::from(UNKNOWN - 1)) as u32;
                    }
                }
                EventKind::Site { .. } => continue,
                EventKind::Free { .. } | EventKind::Resize { .. } => {}
            }
            let thread = event.thread as usize;
            survey.last_events.resize(survey.last_events.len().max(thread + 1), 0);
            survey.last_events[thread] = reader.totals().events;
        }
        survey.totals = *reader.totals();
        if let Some((totals, metadata)) = reader.end() {
            survey.complete = true;
            survey.totals = *totals;
            survey.metadata.extend(metadata.iter().cloned());
        }
        Ok(survey)
    }
}

/// The resident pages of blocks at their ends, for another pass over the same trace.
pub(crate) struct ResidentAtEnd<'a>(std::slice::Iter<'a, u32>);

impl<'a> ResidentAtEnd<'a> {
    pub(crate) fn new(survey: &'a Survey) -> Self {
        Self(survey.resident_at_end.iter())
    }

    /// Those of the block that is allocated next, if they are known.
    pub(crate) fn of_next(&mut self, detail: Option<BlockDetail>) -> Option<u64> {
        let pages = detail.and_then(|_| self.0.next()).copied().filter(|&pages| pages != UNKNOWN);
        pages.map(u64::from)
    }
}
