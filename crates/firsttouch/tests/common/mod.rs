//! Helpers shared by the tests.

#![allow(dead_code)] // each test binary uses its part

pub mod alone;
#[cfg(unix)]
pub mod forked;
pub mod held;
#[cfg(unix)]
pub mod limits;
#[cfg(unix)]
pub mod mapped;
pub mod pattern;
pub mod process;
pub mod reentrant;
pub mod storm;

use firsttouch::adaptors::Limited;
use firsttouch::sources::Calloc;
use std::sync::Arc;

/// The C library's memory, for tests that look at what reaches an upstream: its statistics count exactly.
pub fn counted() -> Arc<Limited> {
    Limited::new(Calloc::new(), 1 << 40)
}
