//! Numbers for threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of this thread; no two threads of a process ever share one, and none is zero.
pub fn thread() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static OWN: u64 = LAST.fetch_add(1, Relaxed) + 1;
    }
    OWN.with(|&number| number)
}
