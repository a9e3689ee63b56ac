//! Replays a trace on any allocator: the same requests in the same order, each thread's in a thread of its own.

mod player;
#[cfg(test)]
mod tests;
mod threads;

pub use player::{ReplayOptions, ReplayOutcome, Target, Touch};

use crate::format::TraceError;
use crate::survey::Survey;
use player::Player;
use std::io::Read;

/// Replays a trace that `survey` has read before. Blocks that are live at the end are freed, outside the measured time.
///
/// # Errors
/// If `source` cannot be read, or a thread cannot be started.
pub fn replay<R: Read + Send>(
    source: R,
    survey: &Survey,
    target: &dyn Target,
    options: ReplayOptions,
) -> Result<ReplayOutcome, TraceError> {
    let player = Player::new(source, survey, target, options)?;
    if options.threads { threads::run(player, survey) } else { player.run_to_end() }
}
