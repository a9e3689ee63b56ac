//! A bound on this process's memory that somebody else watches, such as a cluster's scheduler: near it idle memory goes.

use crate::os;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of resident memory; all where nobody watches.
static BOUND: AtomicUsize = AtomicUsize::new(usize::MAX);

/// From `bytes` of resident memory on pools keep nothing idle; they begin to give back before, as room gets scarce.
pub fn set(bytes: Option<usize>) {
    BOUND.store(bytes.unwrap_or(usize::MAX), Relaxed);
}

/// Bytes that this process may still take, of what the machine, the container and the bound leave.
pub(crate) fn headroom() -> usize {
    os::headroom().min(left().unwrap_or(usize::MAX))
}

/// Bytes that the bound leaves, where there is one.
pub(crate) fn left() -> Option<usize> {
    let bound = BOUND.load(Relaxed);
    (bound != usize::MAX).then(|| bound.saturating_sub(os::resident()))
}
