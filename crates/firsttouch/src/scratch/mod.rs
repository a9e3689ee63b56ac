//! Scratch memory for arrays: allocating moves a pointer, and an array that outlives its scope stays valid.
//!
//! A [`Buffer`] counts the live blocks of each of its chunks, so that nothing is reused while it is live; a [`Scope`] says
//! where and how long a front uses a buffer. For scratch memory in Rust alone, where the borrow checker replaces counting,
//! see [`arena`](crate::arena).

#![allow(unsafe_code)] // Safety: blocks are counted out of band, and none is reused while it is live (law 8).

mod buffer;
mod chunk;
mod scope;

pub use buffer::{Buffer, BufferOptions, BufferOptionsError};
pub use chunk::{Damage, Survivor};
pub use scope::{Owner, Scope};
