//! Scratch memory for arrays: memory that is freed in a scope is reused there, and arrays that outlive the scope stay
//! valid.
//!
//! A [`Backing`] holds the memory and counts its blocks; a [`Scope`] is the allocator that uses it during one block of
//! code. For scratch memory in Rust alone, where the borrow checker replaces counting, see `arena`.

#![allow(unsafe_code)] // Safety: blocks are counted out of band, and none is reused while it is live (law 8).

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
