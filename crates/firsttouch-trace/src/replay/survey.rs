//! A first reading of a whole trace: whether it is one, and what is known only later on.

use crate::event::Kind;
use crate::format::TraceError;
use crate::output::Facts;
use crate::reader::{Reader, Totals};
use std::io::Read;

/// What is not known of a zeroed block's pages.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// See the module.
#[derive(Debug, Default)]
pub struct Survey {
    /// Facts of the start and of the end.
    pub facts: Facts,
    /// Whether the end mark is there.
    pub complete: bool,
    /// What was counted.
    pub totals: Totals,
    /// Microseconds to the last event.
    pub micros: u64,
    /// Pages that were there in the end, of each zeroed block in the order in which they were given.
    pub(super) zeroed: Vec<u32>,
    /// Each thread's last event, by its number from 1 on.
    pub(super) last: Vec<u64>,
}

impl Survey {
    /// Reads it all. With `incomplete`, one that is cut off is taken as far as it goes.
    ///
    /// # Errors
    /// Where it is no trace, or not a whole one.
    pub fn new(source: impl Read, incomplete: bool) -> Result<Self, TraceError> {
        let mut reader = Reader::new(source)?;
        let mut survey = Self { facts: reader.facts().clone(), ..Self::default() };
        // By the number of a living block: its place in `zeroed`.
        let mut places: Vec<Option<usize>> = Vec::new();
        while let Some(event) = reader.next_of(incomplete)? {
            survey.micros = event.micros;
            match event.kind {
                Kind::Allocate { block, zeroed, .. } => {
                    let place = zeroed.then_some(survey.zeroed.len());
                    survey.zeroed.extend(place.map(|_| UNKNOWN));
                    places.resize(places.len().max(block as usize + 1), None);
                    places[block as usize] = place;
                }
                Kind::Free { block, resident: Some(resident) } | Kind::Seen { block, resident } => {
                    if let Some(place) = places[block as usize] {
                        survey.zeroed[place] = resident.min(u64::from(UNKNOWN - 1)) as u32;
                    }
                }
                Kind::Site { .. } => continue,
                Kind::Free { .. } | Kind::Resize { .. } => {}
            }
            let thread = event.thread as usize;
            survey.last.resize(survey.last.len().max(thread + 1), 0);
            survey.last[thread] = reader.seen().events;
        }
        survey.totals = *reader.seen();
        if let Some((totals, facts)) = reader.end() {
            survey.complete = true;
            survey.totals = *totals;
            survey.facts.extend(facts.iter().cloned());
        }
        Ok(survey)
    }
}
