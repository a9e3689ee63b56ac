//! What happens at a fork, in order. Nothing else in this crate registers fork handlers. A lock that another thread holds at a fork
//! is never released in the child (law 6). So each lock under which memory is requested or freed belongs here: a static one in
//! `LOCKS`; those of an object through the purger, with which the object registers ([`Registered`]). Both implement [`AtFork`].
//!
//! 1. Python's hook, in the main thread, keeps the purger from starting again (`process.rs` in firsttouch-python).
//! 2. `before`: takes `FORKING`, ends the purger's thread, purges what is registered, takes their locks, `LOCKS` and jemalloc's.
//! 3. The fork. In a preloaded program the C library serves the thread meanwhile; blocks that it frees wait (`life.rs` there).
//! 4. `after`, on both sides: `LOCKS` are released, then the locks of registered objects; a child takes an account of a shared
//!    budget (`accounts.rs`); the purger's lock and `FORKING` are released.
//! 5. Preloaded: the waiting blocks are freed; a child leaves the report to its parent, and starts no purger for now (`idle.rs`).
//! 6. Python's hooks: the purger resumes with the function that forked; in a child, the report (`ending.py`), the table of live
//!    blocks (`_firsttouch_start`) and the wait for handles (`sharing.py`) begin anew. Without Python the next free or fresh memory
//!    of a pool restarts the purger.

#![allow(unsafe_code)] // Safety: `after` runs only after `before`, in the thread that forked or in its copy.

use crate::heap::purger::{PURGER, Registered, end_and_hold};
use crate::os;
use crate::sync::OnceBox;
use crate::sync::lock::{AtFork, Lock, RawLock};
use crate::{failure, heap, owners, sources};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// If two threads forked at once, one would wait for the purger's thread and the other would go on without it. While
/// others hold it, the process does not fork, and they may take all other locks.
pub(crate) static FORKING: Lock<()> = Lock::new(());
/// The forks between the first process and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);
static IS_INTERRUPTED: OnceBox<fn() -> bool> = OnceBox::new();
/// Static locks, in the order in which they are taken, after those of registered objects.
static LOCKS: &[&dyn AtFork] = &[
    &owners::KEEPERS,
    #[cfg(feature = "mimalloc")]
    &sources::GATE,
    &heap::claim::FIRST_SLOTS,
    &failure::FAILURES,
];

/// The library's constructor registers the handlers. If a first use did that, another thread could fork meanwhile, and its
/// child would wait for ever for the end of the registration, or for a lock that was taken right after it.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array.00098"))]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    // Handlers that are registered later come first before a fork. jemalloc's take its locks, and ours may call it.
    sources::register_fork_handlers();
    watch();
}

/// Registers the handlers at the first call: that of the library's constructor, or of another one that came earlier.
pub(crate) fn watch() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.swap(true, Relaxed) {
        os::at_fork(before, after, after_in_child);
    }
}

extern "C" fn before() {
    if is_interrupted() {
        return;
    }
    FORKING.raw().hold();
    end_and_hold();
    // SAFETY: `end_and_hold` has acquired the lock, and `after` releases it.
    let purger = unsafe { PURGER.held() };
    // Or the first write to it, on either side, would copy it. What was made later may give it to what was made before.
    purger.registered().rev().for_each(Registered::trim_idle);
    purger.registered().for_each(|what| what.locks(&mut RawLock::hold));
    LOCKS.iter().for_each(|what| what.locks(&mut RawLock::hold));
}

extern "C" fn after() {
    if is_interrupted() {
        return;
    }
    // SAFETY: `before` took these locks, in this thread or in the one that it is a copy of.
    unsafe {
        let release = |what: &dyn AtFork| what.locks(&mut |lock| lock.release());
        LOCKS.iter().for_each(|&what| release(what));
        PURGER.held().registered().for_each(|what| release(what));
        PURGER.held().registered().for_each(AtFork::after_fork);
        PURGER.raw().release();
        FORKING.raw().release();
    }
}

extern "C" fn after_in_child() {
    FORKS.fetch_add(1, Relaxed);
    after();
}

/// The number of forks between the first process and this one: it tells a child from its parent without a system call.
#[inline]
pub fn forks() -> u32 {
    FORKS.load(Relaxed)
}

/// Lets a fork pass without regard to locks where `asked` returns true for its thread: in a signal handler that interrupted
/// the thread while it held a lock of ours. The child may wait for ever if it goes on using what they protect.
pub fn let_forks_pass(asked: fn() -> bool) {
    IS_INTERRUPTED.get_or_init(|| Box::new(asked));
}

fn is_interrupted() -> bool {
    IS_INTERRUPTED.get().is_some_and(|asked| asked())
}

/// For the model checker: all that happens around a fork.
#[cfg(shuttle)]
pub fn run_handlers() {
    before();
    after();
}
