//! A first pass over a trace, which validates it and collects what a replay has to know in advance.

use crate::event::{EventKind, Metadata, Totals};
use crate::format::TraceError;
use crate::reader::Reader;
use std::io::Read;

/// Marks a zeroed block whose resident pages were not recorded.
pub(super) const UNKNOWN: u32 = u32::MAX;

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
    /// Resident pages at the end of each zeroed block, in the order of allocation.
    pub(super) resident_at_end: Vec<u32>,
    /// Number of the last event of each thread, counted from 1.
    pub(super) last_events: Vec<u64>,
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
        let mut zeroed_indices: Vec<Option<usize>> = Vec::new();
        while let Some(event) = reader.next_event(allow_truncated)? {
            survey.micros = event.micros;
            match event.kind {
                EventKind::Allocate { block, zeroed, .. } => {
                    let index = zeroed.then_some(survey.resident_at_end.len());
                    survey.resident_at_end.extend(index.map(|_| UNKNOWN));
                    zeroed_indices.resize(zeroed_indices.len().max(block as usize + 1), None);
                    zeroed_indices[block as usize] = index;
                }
                EventKind::Free { block, resident: Some(resident) } | EventKind::Live { block, resident } => {
                    if let Some(index) = zeroed_indices[block as usize] {
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
