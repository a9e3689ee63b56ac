//! Lets the module's own requests for memory fail, for tests.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Requests until one fails; zero where none is to fail, negative where all do.
static COUNTDOWN: AtomicI64 = AtomicI64::new(0);
static ONWARDS: AtomicI64 = AtomicI64::new(0);

/// Whether a request is to fail now.
#[inline]
pub fn fails() -> bool {
    COUNTDOWN.load(Relaxed) != 0 && count()
}

#[cold]
fn count() -> bool {
    let before = COUNTDOWN.load(Relaxed);
    if before < 0 {
        return true;
    }
    let then = if before == 1 { ONWARDS.load(Relaxed) } else { before - 1 };
    COUNTDOWN.store(then, Relaxed);
    before == 1
}

/// From now on the `n`-th request fails, and with `onwards` all that follow; zero ends that. Whether one was still to
/// fail.
pub fn set(n: i64, onwards: bool) -> bool {
    ONWARDS.store(if onwards { -1 } else { 0 }, Relaxed);
    COUNTDOWN.swap(n, Relaxed) > 0
}
