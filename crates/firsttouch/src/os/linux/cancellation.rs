//! Functions like fork(2) and malloc(3), in which this library runs, are no cancellation points: pthread_cancel(3) must not
//! end a thread in what they call, or locks would stay locked.

use std::ptr::null_mut;

const DISABLE: libc::c_int = 1;

// SAFETY: the C library's function, as pthread_setcancelstate(3) declares it.
unsafe extern "C" {
    fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
}

/// Calls `body`, in which this thread is not cancelled.
pub(super) fn uncancelled<T>(body: impl FnOnce() -> T) -> T {
    let mut before = 0;
    // SAFETY: it changes this thread alone, and writes one number.
    unsafe { pthread_setcancelstate(DISABLE, &mut before) };
    let result = body();
    // SAFETY: as above.
    unsafe { pthread_setcancelstate(before, &mut before) };
    result
}

/// Waits for the end of a thread.
///
/// # Safety
/// It is joined once.
pub(super) unsafe fn join(thread: libc::pthread_t) {
    // SAFETY: as demanded.
    uncancelled(|| unsafe { libc::pthread_join(thread, null_mut()) });
}
