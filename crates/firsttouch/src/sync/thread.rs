//! Thread numbers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of the calling thread. No two threads of a process ever have the same number, and none is zero.
pub fn thread() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static OWN: u64 = LAST.fetch_add(1, Relaxed) + 1;
    }
    OWN.with(|&number| number)
}
