//! fork(2), as called by a C library.

#![allow(unsafe_code)] // Safety: the child runs only the body it is given, and never returns into the parent's code.

use super::process::PATIENCE;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Sets what a panic in a forked child writes. The child cannot set it itself: it would wait for ever for the standard
/// library's lock if another test panicked at the fork.
fn hook_panics() {
    static HOOKED: Once = Once::new();
    if std::thread::panicking() {
        return; // a destructor forks; the hook must not be changed now
    }
    HOOKED.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_CHILD.load(Relaxed) {
                return others(panic);
            }
            let text = format!("in the forked child: {panic}\n");
            // SAFETY: the text is as long as it says.
            unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
        }));
    });
}

/// Runs `body` in a forked child; a panic is the child's failure.
pub fn fork(body: impl FnOnce()) -> Child {
    hook_panics();
    // SAFETY: the child ends in `_exit`.
    match unsafe { libc::fork() } {
        -1 => panic!("{}", std::io::Error::last_os_error()),
        0 => {
            IS_CHILD.store(true, Relaxed);
            let status = i32::from(catch_unwind(AssertUnwindSafe(body)).is_err());
            // SAFETY: nothing of the parent's is run at the end.
            unsafe { libc::_exit(status) }
        }
        id => Child { id, began: Instant::now() },
    }
}

/// Runs `body` in a thread of the child. The standard library's would wait for ever for a lock of its own, which each of
/// its threads takes as it starts and ends, if one of the parent's had it at the fork.
pub fn in_thread<F: FnOnce() + Send>(body: F) {
    extern "C" fn run<F: FnOnce()>(body: *mut c_void) -> *mut c_void {
        // SAFETY: it points to the body below, which nobody else uses before this thread was joined.
        unsafe { &mut *body.cast::<Option<F>>() }.take().unwrap()();
        null_mut()
    }
    let (mut body, mut thread) = (Some(body), MaybeUninit::uninit());
    // SAFETY: the body lives until the thread was joined.
    unsafe {
        assert_eq!(libc::pthread_create(thread.as_mut_ptr(), null(), run::<F>, (&raw mut body).cast()), 0);
        assert_eq!(libc::pthread_join(thread.assume_init(), null_mut()), 0);
    }
}

/// A forked child that must end well.
#[must_use]
pub struct Child {
    id: libc::pid_t,
    began: Instant,
}

impl Child {
    /// Waits for the child; it must not have failed, and not hang.
    pub fn join(self) {
        assert_eq!(self.status(), 0, "a forked child failed");
    }

    /// Waits for the child; the signal that ended it, if one did. Otherwise it must not have failed.
    pub fn signal(self) -> Option<i32> {
        let status = self.status();
        if libc::WIFSIGNALED(status) {
            return Some(libc::WTERMSIG(status));
        }
        assert_eq!(status, 0, "a forked child failed");
        None
    }

    /// What waitpid(2) says; it must not hang.
    fn status(self) -> i32 {
        let mut status = 0;
        loop {
            // SAFETY: the status is written for a child of ours.
            let result = unsafe { libc::waitpid(self.id, &mut status, libc::WNOHANG) };
            if result == self.id {
                return status;
            }
            assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
            if self.began.elapsed() > PATIENCE {
                // SAFETY: the child is ours and was not waited for.
                unsafe { libc::kill(self.id, libc::SIGKILL) };
                panic!("a forked child hangs");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
