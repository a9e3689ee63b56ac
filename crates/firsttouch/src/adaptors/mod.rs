//! Allocators that stand on another, their upstream.

mod pool;

pub use pool::{Options, Pool, SMALL_LIMIT};
