//! How long tests wait for what must happen.

use std::time::Duration;

/// Names a number of seconds in place of fewer, where a processor is emulated and may stand still for a while.
const PATIENCE: &str = "FIRSTTOUCH_TEST_PATIENCE";

/// The usual patience, or more where the machine needs it.
pub fn at_least(usual: Duration) -> Duration {
    let named = std::env::var(PATIENCE).ok().and_then(|seconds| seconds.parse().ok());
    named.map_or(usual, |seconds| usual.max(Duration::from_secs(seconds)))
}
