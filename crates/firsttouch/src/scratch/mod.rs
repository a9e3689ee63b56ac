//! Scratch memory that arrays live on: what dies in a scope is used again there, and what outlives it stays where it is.
//!
//! A [`Backing`] holds the memory and counts its blocks; a scope is an allocator that stands before it for the time
//! of one scope. For Rust alone, where the borrow checker counts, see `arena`.

#![allow(unsafe_code)] // Safety: blocks are counted out of band, and none is used again while it lives (law 8).

mod backing;
mod buffer;
mod slots;
mod space;
mod spaces;

pub use backing::{Backing, Closed, Damage, Refused, Slot, Survivor};
pub use buffer::{BadOptions, Buffer, Options};
