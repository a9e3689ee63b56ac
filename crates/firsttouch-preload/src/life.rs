//! The library in its process: the constructor, forks, and threads that are interrupted in a request.
//!
//! **Around a fork** the thread that forks may not wait for a lock: it holds them all. Our handlers are registered first, so
//! whatever the program's own do before the fork and after it, our locks are free then. Handlers that were registered even earlier
//! run while the locks are held. Meanwhile the C library serves their thread, and blocks that it frees wait in a list that runs
//! through them.
//!
//! **A signal handler** may interrupt a thread within a request, and may fork, or call exit, which frees, as it may under the C
//! library in a program with one thread. Nothing then waits for a lock, which this thread may hold: the C library serves, and freed
//! blocks wait. A forked child leaves the pool alone, since other threads of its parent may have held locks, too.

use crate::settings::Settings;
use crate::{idle, large, next, report};
use firsttouch::adaptors::Pool;
use firsttouch::fork::let_forks_pass;
use firsttouch::os::at_fork;
use firsttouch_report::glibc;
use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The core's constructor, which registers its fork handlers, is 98: ours surround them.
#[used]
#[unsafe(link_section = ".init_array.00097")]
static BEFORE_THE_CORE: extern "C" fn() = watch_inside;

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = begin;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

unsafe extern "C" fn begin(count: c_int, words: *const *const c_char, environment: *const *const c_char) {
    next::look_up_names();
    // SAFETY: getauxval has no preconditions.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return; // more rights than its caller, whose settings must not count
    }
    let rival = next::rival();
    // SAFETY: the loader hands the program's own lists over.
    let settings = unsafe { Settings::read(environment) };
    let refused = rival.map(|file| {
        let name = file.to_string_lossy();
        let name = name.rsplit('/').next().unwrap_or_default();
        format!("the program brings a malloc of its own, in {name}")
    });
    let serves = refused.is_none();
    if serves {
        firsttouch::os::stop_reading_files();
        idle::begin();
        glibc::begin_to_raise(|_| true); // nothing was freed yet
        large::set_pool(Pool::new(settings.pool));
        watch_outside();
    }
    // SAFETY: the loader hands over as many words as it says.
    unsafe { report::begin(settings.reporting, settings.threshold, refused, (count, words)) };
    if serves {
        large::serve_from(settings.threshold);
    }
}

extern "C" fn end() {
    report::write();
}

// Handlers are called in the reverse order before a fork: the first are called while the locks are held, the last while
// they are free.

/// Registers what is called while the locks are held; the core's own handlers come after.
pub extern "C" fn watch_inside() {
    at_fork(begin_fork, end_fork, end_fork);
}

/// Registers what is called while they are free.
pub fn watch_outside() {
    extern "C" fn nothing() {}
    let_forks_pass(is_inside);
    at_fork(nothing, free_deferred, begin_anew);
}

extern "C" fn begin_fork() {
    if !is_inside() {
        FORKING_THREAD.store(this_thread(), Relaxed);
    }
}

extern "C" fn end_fork() {
    if !is_inside() {
        FORKING_THREAD.store(0, Relaxed);
    }
}

extern "C" fn free_deferred() {
    let Some(pool) = large::pool().filter(|_| !is_inside()) else { return };
    // SAFETY: the blocks are the pool's, and freed.
    unsafe { drain(|block| large::deallocate(pool, block)) };
}

extern "C" fn begin_anew() {
    if is_inside() {
        ABANDONED.store(true, Relaxed);
    }
    if let Some(pool) = large::pool() {
        idle::restart(pool);
    }
    report::leave_to_parent();
    free_deferred();
}

/// The thread that holds the locks for its fork; zero where none does.
static FORKING_THREAD: AtomicUsize = AtomicUsize::new(0);
/// The blocks that were freed, each leading to the next.
static DEFERRED: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// Whether this thread holds the locks for its fork.
#[inline]
pub fn is_forking() -> bool {
    let forking = FORKING_THREAD.load(Relaxed);
    forking != 0 && forking == this_thread()
}

pub fn this_thread() -> usize {
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

/// Calls `free` with each block that was kept, once the locks are free.
///
/// # Safety
/// `free` frees the blocks.
pub unsafe fn drain(mut free: impl FnMut(NonNull<u8>)) {
    if DEFERRED.load(Relaxed).is_null() {
        return;
    }
    let mut next = DEFERRED.swap(null_mut(), Acquire);
    while let Some(block) = NonNull::new(next) {
        // SAFETY: `defer` wrote the address of the next block into this one, which is used no more.
        next = unsafe { block.cast::<*mut u8>().read() };
        free(block);
    }
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

static ABANDONED: AtomicBool = AtomicBool::new(false);

/// Whether this thread is within a request.
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Calls what may acquire a lock of the pool; nothing where this thread was interrupted within such a call.
pub fn within<T>(body: impl FnOnce() -> T) -> Option<T> {
    INSIDE.with(|inside| {
        if inside.replace(true) {
            return None;
        }
        let result = body();
        inside.set(false);
        Some(result)
    })
}

/// Whether this process leaves the pool alone.
pub fn is_abandoned() -> bool {
    ABANDONED.load(Relaxed)
}
