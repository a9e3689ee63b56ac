//! When idle memory goes.
//!
//! A thread of ours in somebody else's program is not free: `unshare(CLONE_NEWUSER)` fails, and the C library's locks
//! cost more from then on. So there is none as long as little memory is kept, and frees give back what is more. In a
//! program that takes it again, or that has threads anyway, the background purger is worth its thread.

use crate::next;
use firsttouch::Allocator;
use firsttouch::adaptors::Pool;
use firsttouch::heap::purger::{MAY_RUN, runs};
use std::ffi::c_char;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// Bytes that stay idle without a thread, and the part of what is in use: giving back searches all that is in use, so a
/// program that frees many blocks must not pay for that again and again.
const KEEP: usize = 4 << 20;
const KEEP_PART: usize = 16;

/// Bytes taken again after they had been given back, from which on a thread is wanted.
const BOUND: usize = 4 << 20;
/// Bytes taken again, and taken at all, before this process was forked.
static AGAIN: AtomicUsize = AtomicUsize::new(0);
static FRESH: AtomicUsize = AtomicUsize::new(0);
/// Whether there is never to be a thread.
static NEVER: AtomicBool = AtomicBool::new(false);
/// What the C library says of the process, as `char __libc_single_threaded`; null if it does not.
static SINGLE_THREADED: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

pub fn begin() {
    MAY_RUN.store(false, Relaxed);
    SINGLE_THREADED.store(next::look_up(c"__libc_single_threaded").cast(), Relaxed);
}

/// From now on there is no thread, unless it runs already.
pub fn never_start_a_thread() {
    NEVER.store(true, Relaxed);
    MAY_RUN.store(false, Relaxed);
}

/// Starts anew in a forked child. It has one thread, but the C library goes on to say that there are more.
pub fn restart(pool: &Pool) {
    MAY_RUN.store(false, Relaxed);
    if has_threads() {
        SINGLE_THREADED.store(null_mut(), Relaxed);
    }
    AGAIN.store(pool.taken_again(), Relaxed);
    FRESH.store(pool.taken_fresh(), Relaxed);
}

/// Before an allocation, because a free must not start a thread: allows one if it is wanted.
pub fn before_allocation(pool: &Pool) {
    if MAY_RUN.load(Relaxed) || NEVER.load(Relaxed) {
        return;
    }
    let again = pool.taken_again().saturating_sub(AGAIN.load(Relaxed));
    let fresh = pool.taken_fresh().saturating_sub(FRESH.load(Relaxed));
    if again > BOUND || (fresh > KEEP && has_threads()) {
        MAY_RUN.store(true, Relaxed);
    }
}

/// Whether the program has started threads.
fn has_threads() -> bool {
    let told = SINGLE_THREADED.load(Relaxed);
    // SAFETY: null, or the C library's variable, which is never gone. It writes it while there is one thread.
    !told.is_null() && unsafe { told.read_volatile() } == 0
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
    pool.tick_if_due();
    let keep = || KEEP.max(pool.active() / KEEP_PART);
    if pool.idle() > keep() {
        pool.trim();
        if pool.idle() > keep() {
            pool.trim_parts(); // nobody would do it later
        }
    }
}
