//! Whether a thread is within a request to the pool.
//!
//! A signal may interrupt it there, and its handler may fork, or call exit, which frees, as it may under the C library in a
//! program with one thread. Nothing then waits for a lock, which this thread may hold: the C library serves, and what is
//! freed waits. A forked child leaves the pool alone, since other threads of its parent may have held locks, too.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

static ABANDONED: AtomicBool = AtomicBool::new(false);

/// Whether this thread is within a request.
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Calls what may acquire a lock of the pool; nothing where this thread was interrupted within such a call.
pub fn within<T>(body: impl FnOnce() -> T) -> Option<T> {
    INSIDE.with(|inside| {
        if inside.replace(true) {
            return None;
        }
        let result = body();
        inside.set(false);
        Some(result)
    })
}

/// Whether this process leaves the pool alone.
pub fn is_abandoned() -> bool {
    ABANDONED.load(Relaxed)
}

/// Leaves it alone from now on.
pub fn abandon() {
    ABANDONED.store(true, Relaxed);
}
