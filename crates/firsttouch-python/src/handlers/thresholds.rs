//! Keeps the thresholds of glibc's `malloc` where NumPy's arrays would have put them.
//!
//! glibc maps large blocks one by one and returns them when they are freed, until the first such free: then it raises the
//! size from which on it does so to that of the block, and keeps twice as much at the top of its heap (`M_MMAP_THRESHOLD`
//! in mallopt(3)). Where a pool serves NumPy, glibc sees none of the large blocks, and goes on mapping and returning those
//! of everybody else in the process: a program that joins tables with pandas took 59,000 page faults on the pool instead
//! of 26,000.

#![allow(unsafe_code)] // Safety: a block of the C library's is freed at once.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// glibc's thresholds follow blocks up to this size (`DEFAULT_MMAP_THRESHOLD_MAX`, less the chunk's header and rounding).
const MOST: usize = (32 << 20) - (64 << 10);

/// The size that the thresholds were raised for, at first glibc's initial one.
static RAISED: AtomicUsize = AtomicUsize::new(128 << 10);

/// Raises glibc's thresholds for a block of `size` bytes that it does not see.
#[inline]
pub fn raise(size: usize) {
    if cfg!(target_env = "gnu") && (RAISED.load(Relaxed) + 1..=MOST).contains(&size) {
        raise_to(size);
    }
}

/// In steps of a quarter at least: arrays that grow bit by bit would map and unmap a block each time.
#[cold]
fn raise_to(size: usize) {
    let raised = RAISED.load(Relaxed);
    let size = size.max(raised + raised / 4).min(MOST);
    RAISED.fetch_max(size, Relaxed);
    // SAFETY: nobody uses the block, if there is one; that it is freed raises the thresholds.
    unsafe { libc::free(std::hint::black_box(libc::malloc(size))) };
}
