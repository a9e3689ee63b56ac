//! When idle memory goes.
//!
//! A thread of ours in somebody else's program is not free: `unshare(CLONE_NEWUSER)` fails, and the C library's locks
//! cost more from then on. So there is none as long as little memory is kept, and frees give back what is more. In a
//! program that faults it in again and again the background purger is worth its thread.

use crate::settings::Thread;
use firsttouch::Allocator;
use firsttouch::adaptors::Pool;
use firsttouch::heap::purger::{MAY_RUN, runs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Bytes that stay idle without a thread.
const KEEP: usize = 4 << 20;

/// Bytes faulted in again from which on a thread is wanted.
static BOUND: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Bytes faulted in again before this process was forked.
static BEFORE: AtomicUsize = AtomicUsize::new(0);
/// Whether there is never to be a thread, and idle memory only decays as the program allocates.
static NEVER: AtomicBool = AtomicBool::new(false);

pub fn begin(thread: Thread) {
    MAY_RUN.store(false, Relaxed);
    match thread {
        Thread::Never => NEVER.store(true, Relaxed),
        Thread::After(bytes) => BOUND.store(bytes, Relaxed),
    }
}

/// Starts anew in a forked child.
pub fn restart(pool: &Pool) {
    MAY_RUN.store(false, Relaxed);
    BEFORE.store(pool.faulted_again(), Relaxed);
}

/// Before an allocation, because a free must not start a thread: allows one if it is wanted.
pub fn before_allocation(pool: &Pool) {
    let bound = BOUND.load(Relaxed).saturating_add(BEFORE.load(Relaxed));
    if !MAY_RUN.load(Relaxed) && pool.faulted_again() > bound {
        MAY_RUN.store(true, Relaxed);
    }
}

/// Allows a thread from the next allocation on: the program has one of ours anyway, or would have.
pub fn allow_thread() {
    if !NEVER.load(Relaxed) {
        MAY_RUN.store(true, Relaxed);
    }
}

/// After a free: without a thread, does its work. All goes then: what is left of a sparse block would be cleared at once
/// for the next zeroed request.
pub fn after_free(pool: &Pool) {
    if runs() {
        return;
    }
    pool.tick();
    if !NEVER.load(Relaxed) && pool.idle() > KEEP {
        pool.trim();
    }
}
