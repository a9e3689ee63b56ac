//! Scratch memory for Rust: allocating moves a pointer, and leaving a scope moves it back.
//!
//! Blocks are not freed one by one, and values in an [`Arena`] are never dropped. The borrow checker keeps scopes safe, so
//! nothing is counted and nothing can dangle:
//!
//! ```
//! use firsttouch::arena::{Arena, ArenaError};
//!
//! let mut arena = Arena::new();
//! let sum = arena.scope(|s| {
//!     let kept = s.alloc_slice::<f64>(1000)?; // zeros
//!     s.scope(|inner| {
//!         let squares = inner.alloc_slice_with(1000, |i| (i * i) as f64)?;
//!         kept.copy_from_slice(squares);
//!         Ok::<_, ArenaError>(())
//!     })?; // the memory of the squares is free again
//!     Ok::<_, ArenaError>(kept.iter().sum::<f64>())
//! })?;
//! assert_eq!(sum, 332_833_500.0);
//! # Ok::<(), ArenaError>(())
//! ```
//!
//! | method | allocates |
//! |---|---|
//! | `alloc(value)` | a value, moved into the arena |
//! | `alloc_slice::<T>(n)` | `n` zeros |
//! | `alloc_slice_with(n, f)` | `f(0)`, `f(1)`, ... |
//! | `alloc_slice_copy(&slice)` | a copy of a slice |
//! | `alloc_uninit::<T>(n)` | `n` uninitialized values |
//! | `alloc_aligned::<T>(n, align)` | `n` uninitialized values at a multiple of `align` bytes |
//! | `alloc_layout(layout)` | uninitialized memory of a layout |
//!
//! All of them are methods of [`Arena`], where the memory lives until the next rewind or reset, and of [`Scope`], where it
//! lives until the end of the scope. They return an error if there is no memory; none panics.
//!
//! An arena grows by chunks of doubling size, up to a limit, from any [`Allocator`](crate::Allocator). A fixed arena uses
//! the memory it was given and does not grow. Arrays that may outlive their scope need counted memory: see
//! [`scratch`](crate::scratch).

#![allow(unsafe_code)] // Safety: references borrow from the arena or the scope, which bars a rewind.
#![allow(clippy::mut_from_ref)] // each allocation is distinct memory

mod alloc_methods;
#[allow(clippy::module_inception)] // the room is named after its main type
mod arena;
mod bump;
mod chunks;
mod error;
mod inline_vec;
mod marks;
mod rewind;
mod scope;
mod scratch;
mod upstream;

pub use alloc_methods::Zeroable;
pub use arena::Arena;
pub use chunks::ArenaOptions;
pub use error::{ArenaError, ArenaOptionsError, MarkError, ScratchTableError};
pub use marks::Mark;
pub use scope::Scope;
pub use scratch::{Scratch, ScratchTable, TableScratch};
pub use upstream::Upstream;
