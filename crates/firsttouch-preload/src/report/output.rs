//! Writing where the program writes, without a trace of it.

use libc::{FILE, SIGPIPE, SIGXFSZ, c_int, sigset_t, timespec};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

// SAFETY: glibc's stream, and functions as flockfile(3) and unlocked_stdio(3) declare them.
unsafe extern "C" {
    /// The C library's stream for standard output, whatever the program made of `stdout`.
    #[link_name = "_IO_2_1_stdout_"]
    static STDOUT: [u8; 0];

    fn ftrylockfile(stream: *mut FILE) -> c_int;
    fn funlockfile(stream: *mut FILE);
    fn fflush_unlocked(stream: *mut FILE) -> c_int;
}

/// Flushes what the program printed, so that it comes first. Not of a stream that another thread uses, perhaps for ever:
/// nor of all streams, as one that a thread reads is locked.
pub fn flush_stdout() {
    let stream = (&raw const STDOUT).cast_mut().cast();
    // SAFETY: the C library's stream, which is never gone.
    unsafe {
        if ftrylockfile(stream) == 0 {
            fflush_unlocked(stream);
            funlockfile(stream);
        }
    }
}

/// Calls `body`, in which a write to a pipe that nobody reads, or beyond the largest size of a file, is an error but no
/// signal, which would end the program with a status that is not its own.
pub fn without_signals(body: impl FnOnce()) {
    const AT_ONCE: timespec = timespec { tv_sec: 0, tv_nsec: 0 };
    let mut sets = MaybeUninit::<[sigset_t; 3]>::zeroed();
    // SAFETY: the sets are initialized where they are read, or zero, which is a valid set.
    unsafe {
        let [ours, before, pending] = sets.assume_init_mut();
        libc::sigpending(pending);
        for signal in [SIGPIPE, SIGXFSZ].into_iter().filter(|&signal| libc::sigismember(pending, signal) == 0) {
            libc::sigaddset(ours, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, ours, before);
        body();
        while libc::sigtimedwait(ours, null_mut(), &AT_ONCE) > 0 {}
        libc::pthread_sigmask(libc::SIG_SETMASK, before, null_mut());
    }
}
