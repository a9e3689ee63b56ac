//! Threads that do a part of their caller's work, and end before it goes on.

use super::cancellation::join;
use super::process::start;
use crate::os::{Call, Errno, injected};
use std::ffi::c_void;

/// A thread started by [`help`]. Dropping it waits until the thread has ended.
pub struct Helper(libc::pthread_t);

/// Starts a thread that runs `body` on `work`, with all signals blocked, on a small stack.
///
/// A thread of the standard library needs memory of the C library when it begins, for thread-local data, and glibc ends
/// the process where there is none. This one needs none, as long as `body` allocates nothing and uses no thread-local
/// data of this library.
///
/// # Errors
/// If no thread can be created.
///
/// # Safety
/// `body` may be called with `work` in another thread until the [`Helper`] is dropped.
pub unsafe fn help(body: extern "C" fn(*mut c_void) -> *mut c_void, work: *mut c_void) -> Result<Helper, Errno> {
    if injected(Call::Spawn) {
        return Err(Errno(libc::EAGAIN));
    }
    start(body, work).map(Helper)
}

impl Drop for Helper {
    fn drop(&mut self) {
        // SAFETY: the thread was created by `help`, and is joined once.
        unsafe { join(self.0) };
    }
}
