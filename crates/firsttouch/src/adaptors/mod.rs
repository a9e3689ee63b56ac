//! Allocators that wrap another, their upstream.

mod filled;
mod guarded;
mod limited;
mod pool;
mod tracked;

pub use filled::Filled;
pub use guarded::{Guarded, GuardedOptions, Near, Overrun, Side};
pub use limited::{AUTO, Budget, CallSites, Limited};
pub use pool::{DECAY, Machine, NUMPYS_HUGE, Options, Origin, Pool, RENEW_MIN, SMALL_LIMIT, huge_min, is_pool};
pub use tracked::Tracked;
