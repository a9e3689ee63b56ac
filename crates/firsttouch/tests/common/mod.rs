//! Helpers shared by the tests.

#![allow(dead_code)] // each test binary uses its part

pub mod alone;
pub mod forked;
pub mod held;
pub mod limits;
pub mod mapped;
pub mod pages;
pub mod patience;
pub mod pattern;
pub mod process;
pub mod reentrant;
pub mod wild;
