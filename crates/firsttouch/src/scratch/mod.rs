//! Scratch memory that arrays live on: what dies in a scope is used again there, and what outlives it stays where it is.
//!
//! A [`Backing`] holds the memory and counts its blocks; a [`Scope`] is the allocator that stands before it for the time
//! of one block of code. For Rust alone, where the borrow checker counts, see `arena`.

#![allow(unsafe_code)] // Safety: blocks are counted out of band, and none is used again while it lives (law 8).

mod backing;
mod buffer;
mod levels;
mod mark_backing;
mod owner;
mod passed;
mod scope;
mod slots;
mod space;
mod spaces;

pub use backing::{Backing, Closed, Damage, Hold, Refused, Slot, Survivor};
pub use buffer::{BadOptions, Buffer, Options};
pub use mark_backing::MarkBacking;
pub use owner::Owner;
pub use scope::Scope;
