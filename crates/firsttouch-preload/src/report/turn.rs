//! Which thread writes the report: several may end the program at once.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The thread that writes it; zero where none does.
static WRITER: AtomicI32 = AtomicI32::new(0);

fn this_thread() -> i32 {
    // SAFETY: asks for a number.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Takes the turn; false if a thread has it.
pub fn take() -> bool {
    WRITER.compare_exchange(0, this_thread(), AcqRel, Relaxed).is_ok()
}

/// Gives it up.
pub fn end() {
    WRITER.store(0, Release);
}

/// Waits for another thread's report, which would end with the process; not for what this thread was interrupted in.
pub fn wait() {
    within_a_second(|| [0, this_thread()].contains(&WRITER.load(Acquire)));
}

/// Waits until something is so, but not much longer than a report takes; whether it is.
pub fn within_a_second(mut is_so: impl FnMut() -> bool) -> bool {
    const PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    // SAFETY: a valid time.
    (0..1000).any(|_| is_so() || unsafe { libc::nanosleep(&PAUSE, null_mut()) } > 0)
}
