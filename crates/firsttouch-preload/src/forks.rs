//! Around a fork the thread that forks may not wait for a lock: it holds them all.
//!
//! Our handlers are registered first, so whatever the program's own do before the fork and after it, our locks are free
//! then. Handlers of somebody who was earlier still run while the locks are held. Meanwhile the C library serves their
//! thread, and what it frees waits in a list that runs through the freed blocks.

use crate::{forking, idle, inside, large, report};
use firsttouch::fork::let_forks_pass;
use firsttouch::os::at_fork;

// Handlers are called in the reverse order before a fork: the first are called while the locks are held, the last while
// they are free.

/// Registers what is called while the locks are held; the core's own handlers come after.
pub extern "C" fn watch_inside() {
    at_fork(begin, end, end);
}

/// Registers what is called while they are free.
pub fn watch_outside() {
    extern "C" fn nothing() {}
    let_forks_pass(inside::is_inside);
    at_fork(nothing, drain, begin_anew);
}

extern "C" fn begin() {
    if !inside::is_inside() {
        forking::set_forking(true);
    }
}

extern "C" fn end() {
    if !inside::is_inside() {
        forking::set_forking(false);
    }
}

extern "C" fn drain() {
    let Some(pool) = large::pool().filter(|_| !inside::is_inside()) else { return };
    // SAFETY: the blocks are the pool's, and freed.
    unsafe { forking::drain(|block| large::give(pool, block)) };
}

extern "C" fn begin_anew() {
    if inside::is_inside() {
        inside::abandon();
    }
    if let Some(pool) = large::pool() {
        idle::restart(pool);
    }
    report::leave_to_parent();
    drain();
}
