//! Locks that can be held across a fork and need no allocator, values that are created on first use, and thread
//! numbers.
//!
//! Shared by the crates of this workspace; not a stable interface.

#![allow(unsafe_code)] // Safety: a lock's value is reached only by its holder.

pub mod brief_lock;
pub mod first;
pub mod lock;
mod thread;

pub use thread::thread;
