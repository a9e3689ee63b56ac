//! The thread that holds all locks for its fork, and what is freed by whoever may not wait for a lock.

use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The thread that holds the locks for its fork; zero where none does.
static FORKING: AtomicUsize = AtomicUsize::new(0);
/// The blocks that were freed, each leading to the next.
static DEFERRED: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// Whether this thread holds the locks for its fork.
#[inline]
pub fn is_forking() -> bool {
    let forking = FORKING.load(Relaxed);
    forking != 0 && forking == this_thread()
}

fn this_thread() -> usize {
    // SAFETY: has no preconditions.
    unsafe { libc::pthread_self() as usize }
}

/// Keeps a block that was freed until locks can be waited for.
///
/// # Safety
/// The block is the pool's and used no more.
pub unsafe fn defer(block: NonNull<u8>) {
    let _ = DEFERRED.fetch_update(Release, Relaxed, |head| {
        // SAFETY: the block is large enough for an address, aligned, and nobody else's.
        unsafe { block.cast::<*mut u8>().write(head) };
        Some(block.as_ptr())
    });
}

/// This thread holds all locks now, or gives them up.
pub fn set_forking(forking: bool) {
    FORKING.store(if forking { this_thread() } else { 0 }, Relaxed);
}

/// Calls `give` with each block that was kept, once the locks are free.
///
/// # Safety
/// `give` takes the blocks back.
pub unsafe fn drain(mut give: impl FnMut(NonNull<u8>)) {
    if DEFERRED.load(Relaxed).is_null() {
        return;
    }
    let mut next = DEFERRED.swap(null_mut(), Acquire);
    while let Some(block) = NonNull::new(next) {
        // SAFETY: `defer` wrote the address of the next block into this one, which is used no more.
        next = unsafe { block.cast::<*mut u8>().read() };
        give(block);
    }
}
