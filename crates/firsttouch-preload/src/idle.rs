//! When idle memory is given back.
//!
//! A thread of ours in somebody else's program is not free: `unshare(CLONE_NEWUSER)` fails, and the C library's locks cost more
//! from then on. So there is none as long as frees themselves can give back all but a little. In a program that takes this memory
//! again the background purger is worth its thread.

use firsttouch::Allocator;
use firsttouch::adaptors::Pool;
use firsttouch::heap::purger::{FREES_START, MAY_RUN, runs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Bytes that stay idle without a thread, and that are taken again until there is one.
const LITTLE: usize = 4 << 20;
/// The part of the memory in use that stays idle: giving back searches all of that memory, so a program that frees many blocks must
/// not pay for that again and again.
const KEEP_PART: usize = 16;

/// Bytes taken again before this process was forked.
static BEFORE: AtomicUsize = AtomicUsize::new(0);
/// Whether there is never to be a thread.
static NEVER: AtomicBool = AtomicBool::new(false);

pub fn begin() {
    FREES_START.store(false, Relaxed);
    MAY_RUN.store(false, Relaxed);
}

/// From now on there is no thread, unless it runs already.
pub fn never_start_a_thread() {
    NEVER.store(true, Relaxed);
    MAY_RUN.store(false, Relaxed);
}

/// Starts anew in a forked child.
pub fn restart(pool: &Pool) {
    MAY_RUN.store(false, Relaxed);
    BEFORE.store(pool.taken_again(), Relaxed);
}

/// Before an allocation: allows a thread if one is wanted.
pub fn before_allocation(pool: &Pool) {
    if !MAY_RUN.load(Relaxed) && pool.taken_again() > BEFORE.load(Relaxed) + LITTLE {
        MAY_RUN.store(!NEVER.load(Relaxed), Relaxed);
    }
}

/// After a free: where there is no thread, does its work. All idle memory goes: the rest of a sparse block would be cleared for the
/// next zeroed request.
pub fn after_free(pool: &Pool) {
    if !runs() {
        pool.tick_if_due();
        if pool.idle() > LITTLE.max(pool.active() / KEEP_PART) {
            pool.trim();
            pool.trim_parts(); // nobody would do it later
        }
    }
}
