#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! * [`Report`] is all that is said of a process, for people and as JSON.
//! * [`glibc`] counts what glibc would have taken fresh for the blocks that a pool serves, and raises its threshold as these
//!   would have raised it.
//! * [`gain`] prices what a pool saves.
//! * [`json`] writes values as JSON.

pub mod gain;
pub mod glibc;
pub mod json;
mod report;

pub use report::{Report, count};
