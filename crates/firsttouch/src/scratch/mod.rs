//! Scratch memory for arrays: allocating moves a pointer, and the same memory is used again at once.
//!
//! A [`Buffer`] counts the live blocks of each of its chunks, so that nothing is reused while it is live, whatever its user
//! does. An [`Arena`] counts nothing. It is rewound to marks, and its user promises not to use what was allocated since; in Rust
//! the borrow checker checks that.

#![allow(unsafe_code)] // Safety: blocks of buffers are counted out of band (law 8); those of arenas borrow from them.

mod arena;
mod buffer;

pub use arena::{Arena, Mark, Scope, Scratch};
pub use buffer::Buffer;
