#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! * [`recorder`] writes a trace of the large blocks of the process, in a simple [`format`](mod@format).
//! * A [`Summary`] reads it, attributes requests to the lines of the program, and estimates what a pool would save.
//! * [`live`] publishes the live blocks with their lines, for another process to read.
//! * [`profile`] counts the allocations made while a region is open; it writes no trace.

#![allow(unsafe_code)] // Safety: a buffer between threads, and locks that are held around forks.

pub mod format;
pub mod live;
pub mod profile;
pub mod recorder;
pub mod summary;
#[cfg(test)]
mod tests;

pub use format::{LARGE_SIZE, Metadata, TraceError};
pub use summary::{LineSummary, Summary};
