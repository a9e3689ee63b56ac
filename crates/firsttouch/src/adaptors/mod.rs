//! Allocators that wrap another, their upstream.

mod accounts;
mod filled;
mod limited;
mod pool;

pub use crate::policy::{DECAY, NUMPYS_HUGE, RENEW_MIN, huge_min};
use crate::spec::declared;

pub use accounts::Accounts;
pub use filled::Filled;
pub use limited::{AUTO, Budget, CallSites, LINES_FROM, Limited, is_sampled, set_call_sites};
pub use pool::{Machine, Options, Origin, Pool, written_bytes};

declared! { filled limited pool }
