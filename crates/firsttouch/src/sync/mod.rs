//! Locks that can be held across a fork and need no allocator, values that are created on first use, and thread numbers.
//!
//! Shared by the crates of this workspace; not a stable interface.

#![allow(unsafe_code)] // Safety: a lock's value is reached only by its holder.

pub mod lock;

/// A value that is set once, or created on first use. Two threads may both create one, of which one is kept. With `OnceLock`, one
/// thread would wait for the other, which never returns in a child that was forked meanwhile.
pub use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of the calling thread. No two threads of a process ever have the same number, and none is zero.
pub fn thread() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static OWN: u64 = LAST.fetch_add(1, Relaxed) + 1;
    }
    OWN.with(|&number| number)
}
