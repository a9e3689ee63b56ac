//! Scratch memory for Rust: allocating moves a pointer, and leaving a scope moves it back.
//!
//! In exchange nothing is freed by itself, and what is allocated in an [`Arena`] is never dropped. The borrow checker
//! keeps scopes safe, so nothing is counted and nothing can dangle:
//!
//! ```
//! use firsttouch::arena::{Arena, Error};
//!
//! let mut arena = Arena::new();
//! let sum = arena.scope(|s| {
//!     let kept = s.alloc_slice::<f64>(1000)?; // zeros
//!     s.scope(|inner| {
//!         let squares = inner.alloc_slice_with(1000, |i| (i * i) as f64)?;
//!         kept.copy_from_slice(squares);
//!         Ok::<_, Error>(())
//!     })?; // the squares' memory is free again
//!     Ok::<_, Error>(kept.iter().sum::<f64>())
//! })?;
//! assert_eq!(sum, 332_833_500.0);
//! # Ok::<(), Error>(())
//! ```
//!
//! | to allocate | what it gives |
//! |---|---|
//! | `alloc(value)` | the value, moved there |
//! | `alloc_slice::<T>(n)` | `n` zeros |
//! | `alloc_slice_with(n, f)` | `f(0)`, `f(1)`, ... |
//! | `alloc_slice_copy(&slice)` | a copy |
//! | `alloc_uninit::<T>(n)` | `n` places that are not written yet |
//! | `alloc_aligned::<T>(n, align)` | the same at a multiple of `align` bytes |
//! | `alloc_layout(layout)` | plain memory |
//!
//! All are methods of [`Arena`], where they live until the next rewind or reset, and of [`Scope`], where they live until
//! its end. Each says why when there is no memory; none panics.
//!
//! An arena grows by chunks that double up to a bound, from any [`Allocator`](crate::Allocator); a fixed one has the
//! memory that it was given and refuses more. Arrays that may outlive their scope need memory that is counted: see
//! [`scratch`](crate::scratch).

#![allow(unsafe_code)] // Safety: references live no longer than what they borrow from, which bars the way back.
#![allow(clippy::mut_from_ref)] // what is allocated is nobody else's

mod allocating;
mod back;
mod bump;
mod chunks;
mod error;
mod growing;
mod holding;
mod larges;
mod list;
mod marks;
mod options;
mod scope;
mod scratch;
pub mod table;
mod upstream;
mod whole;
mod zeroable;

pub use error::Error;
pub use marks::{Mark, MarkError};
pub use options::{BadOptions, Options};
pub use scope::Scope;
pub use scratch::Scratch;
pub use upstream::Upstream;
pub use whole::Arena;
pub use zeroable::Zeroable;
