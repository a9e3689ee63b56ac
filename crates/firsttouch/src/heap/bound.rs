//! A bound on this process's memory enforced from outside, such as by a cluster's scheduler; near it, idle memory is
//! purged.

use crate::os;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of resident memory; `usize::MAX` without a bound.
static BOUND: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Sets the bytes of resident memory at which pools keep nothing idle. They begin to purge before, as memory gets
/// scarce.
pub fn set(bytes: Option<usize>) {
    BOUND.store(bytes.unwrap_or(usize::MAX), Relaxed);
}

/// Bytes that this process may still take, as far as the machine, the container and the bound allow.
pub(crate) fn headroom() -> usize {
    os::headroom().min(left().unwrap_or(usize::MAX))
}

/// Bytes that the bound leaves, if there is one.
pub(crate) fn left() -> Option<usize> {
    let bound = BOUND.load(Relaxed);
    (bound != usize::MAX).then(|| bound.saturating_sub(os::resident()))
}
