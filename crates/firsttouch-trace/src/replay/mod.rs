//! Plays a trace against any memory: what it asks for, in its order, each event in a thread of its own thread's number.

mod baton;
mod player;
mod survey;
#[cfg(test)]
mod tests;

pub use survey::Survey;

use super::format::TraceError;
use player::Player;
use std::io::Read;

/// Memory that a trace can be played against.
///
/// # Safety
/// As malloc(3): a block that is given has the size asked for, and overlaps no living one.
pub unsafe trait Target: Sync {
    /// Calls `turn`, which plays one thread's turn: all calls of the other functions happen in there. Memory whose functions
    /// need more of the calling thread than that it exists, such as an interpreter's lock, provides it around the call.
    fn attached(&self, turn: &mut dyn FnMut()) {
        turn();
    }

    /// A block, or null.
    fn allocate(&self, size: usize, zeroed: bool) -> *mut u8;

    /// The block with another size, perhaps elsewhere; null where it stays as it was.
    ///
    /// # Safety
    /// It is a living block of this memory.
    unsafe fn resize(&self, address: *mut u8, size: usize) -> *mut u8;

    /// Takes a block back.
    ///
    /// # Safety
    /// It is a living block of this memory, of this size, and nobody uses it any more.
    unsafe fn free(&self, address: *mut u8, size: usize);
}

/// What is written to a block when it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Nothing.
    None,
    /// A byte in every page.
    First,
    /// Every byte.
    All,
}

/// How to play.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What is written. Of a large block that was to read zero, only as much as was there at its end.
    pub touch: Touch,
    /// Whether each thread of the trace is one here; else all runs in the calling one.
    pub threads: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Spent in the memory's functions and in writing, without reading the trace.
    pub seconds: f64,
    /// Events played.
    pub events: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// The most bytes that lived at once.
    pub peak_in_use: u64,
}

/// Plays what `survey` saw; blocks that live at the end are given back then.
///
/// # Errors
/// Where the trace can't be read a second time as it was the first.
pub fn replay<R: Read + Send>(
    source: R,
    survey: &Survey,
    target: &dyn Target,
    options: Options,
) -> Result<Outcome, TraceError> {
    let player = Player::new(source, survey, target, options)?;
    if options.threads { baton::run(player, survey) } else { player.alone() }
}
