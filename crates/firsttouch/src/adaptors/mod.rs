//! Allocators that wrap another, their upstream.

mod accounts;
mod filled;
mod limited;
mod pool;

use crate::spec::room;

pub use accounts::Accounts;
pub use filled::Filled;
pub use limited::{AUTO, Budget, CallSites, Limited, set_call_sites};
pub(crate) use pool::written_bytes;
pub use pool::{DECAY, Machine, NUMPYS_HUGE, Options, Origin, Pool, RENEW_MIN, SMALL_LIMIT, huge_min};

room! { filled limited pool }
