#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! * [`trace`] sums up the large blocks of the process by line, and estimates what a pool would save.
//! * [`live`] publishes the live blocks with their lines, for another process to read.
//! * [`profile`] counts the allocations made while a region is open.

#![allow(unsafe_code)] // Safety: a memory file that is mapped.

pub mod live;
pub mod profile;
#[cfg(test)]
mod tests;
pub mod trace;
