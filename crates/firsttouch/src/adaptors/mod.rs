//! Allocators that wrap another, their upstream.

mod accounts;
mod budget;
mod filled;
mod limited;
mod lines;
mod pool;

pub use crate::policy::{DECAY, NUMPYS_HUGE, RENEW_MIN, huge_min};
use crate::spec::declared;

pub use accounts::Accounts;
pub use budget::Budget;
pub use filled::Filled;
pub use limited::{AUTO, Limited};
pub use lines::{CallSites, LINES_FROM, is_sampled, set_call_sites};
pub use pool::{Machine, Options, Origin, Pool, written_bytes};

declared! { filled limited pool }
