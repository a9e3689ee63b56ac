//! Whether a thread is within a request to the pool.
//!
//! A signal may interrupt it there, and its handler may fork, as it may under the C library in a program with one thread. The
//! fork then waits for no lock: this thread may hold it. Its child leaves the pool alone, since other threads of its parent
//! may have held locks, too: the C library serves it, and what came from the pool stays.

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

/// Calls what may acquire a lock of the pool.
pub fn within<T>(body: impl FnOnce() -> T) -> T {
    INSIDE.with(|inside| {
        let outer = inside.replace(true);
        let result = body();
        inside.set(outer);
        result
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
