//! Allocators that wrap another, their upstream.

mod accounts;
mod filled;
mod guarded;
mod limited;
mod pool;
mod tracked;

use crate::spec::room;

pub use accounts::Accounts;
pub use filled::Filled;
pub use guarded::{Guarded, GuardedOptions, Near, Overrun, Side};
pub use limited::{AUTO, Budget, CallSites, Limited, set_call_sites};
pub use pool::{DECAY, Machine, NUMPYS_HUGE, Options, Origin, Pool, RENEW_MIN, SMALL_LIMIT, huge_min, is_pool};
pub use tracked::Tracked;

room! { filled guarded limited pool tracked }
