//! Locks that can be held around a fork and need no allocator, values made at their first use, and numbers for threads.
//!
//! Shared by the crates of this workspace; no stable interface.

#![allow(unsafe_code)] // Safety: a lock's value is reached only by its holder.

pub mod brief_lock;
pub mod first;
pub mod lock;
mod thread;

pub use thread::thread;
