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
#[cfg(unix)]
pub mod pages;
pub mod pattern;
pub mod process;
pub mod reentrant;
pub mod tracked;
pub mod wild;
