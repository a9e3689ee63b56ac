//! The background purger: one thread that decays, bounds and purges the idle memory of all pools.
//!
//! It starts when a pool first takes fresh memory. It ends when no pool holds memory, unless it also trims glibc's heaps. It
//! blocks all signals and allocates nothing itself. Before a fork it is joined, and idle memory is purged, which would be
//! copied when written again. It restarts with the next free or fresh memory, on either side, or with [`resume`].
//!
//! It calls no foreign code, which may wait for other threads, call this library, or fork. What is kept over an upstream that
//! runs any goes as the program requests more, or when it is trimmed.

use crate::heap::malloc_trim;
use crate::policy::{DECAY_EPOCHS, TICK};
use crate::sync::lock::{AtFork, Guard, Lock};
use crate::{fork, os};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::{Duration, Instant};

pub(crate) struct Purger {
    /// The registered objects: no references, as the caller of [`leave`] may hold the only one.
    register: Vec<*const dyn Registered>,
    thread: Option<os::Thread>,
}

// SAFETY: a thread's handle may be joined from any thread, and what is registered is `Sync`.
unsafe impl Send for Purger {}

impl Purger {
    pub(crate) fn registered(&self) -> impl DoubleEndedIterator<Item = &dyn Registered> {
        // SAFETY: whoever entered it (`enter`, `enter_once`) promised that it lives until it leaves.
        self.register.iter().map(|&what| unsafe { &*what })
    }

    fn needs_no_tick(&self) -> bool {
        self.registered().all(Registered::needs_no_tick)
    }
}

pub(crate) static PURGER: Lock<Purger> = Lock::new(Purger { register: Vec::new(), thread: None });
/// Whether the thread runs.
static RUNS: AtomicU32 = AtomicU32::new(0);
/// Whether it may be started. If not, pools tick as they are used.
pub static MAY_RUN: AtomicBool = AtomicBool::new(true);
/// Whether it has to end; it sleeps on this word.
static STOP: AtomicU32 = AtomicU32::new(0);
/// Whether a fork has ended it, and the next free starts it again.
static ENDED_BY_FORK: AtomicBool = AtomicBool::new(false);
/// Whether frees start it. Not those of a program's `malloc`: the C library may free under a lock that the start of a thread needs.
pub static FREES_START: AtomicBool = AtomicBool::new(true);
/// The thread's number at the kernel.
static TASK: AtomicU32 = AtomicU32::new(0);

/// Registers `what`.
///
/// # Safety
/// It lives until [`leave`].
pub unsafe fn enter(what: *const dyn Registered) {
    fork::watch(); // where another constructor came first
    PURGER.lock().register.push(what);
}

/// Registers an object that never leaves, at the first call; `entered` says whether that has been. No fork comes between, as it
/// takes the lock.
#[inline]
pub fn enter_once(what: &'static dyn Registered, entered: &AtomicBool) {
    if !entered.load(Acquire) {
        let mut purger = PURGER.lock();
        if !entered.swap(true, Release) {
            purger.register.push(what);
        }
    }
}

/// Removes `what` from the register.
pub fn leave(what: *const dyn Registered) {
    PURGER.lock().register.retain(|&other| !std::ptr::addr_eq(other, what));
}

/// Starts the thread if it does not run, and returns whether it runs. If it cannot be started, or the program goes on without
/// its first thread, pools tick as they are used.
#[inline]
pub fn ensure() -> bool {
    RUNS.load(SeqCst) != 0 || (MAY_RUN.load(Relaxed) && start(PURGER.lock()))
}

/// Starts the thread again if a fork has ended it. For frees, which do not wait for the lock: the fork that holds it may be this
/// thread's.
#[inline]
pub fn restart_after_fork() {
    if ENDED_BY_FORK.load(Relaxed)
        && MAY_RUN.load(Relaxed)
        && let Some(purger) = PURGER.try_lock()
    {
        start(purger);
    }
}

#[cold]
fn start(mut purger: Guard<'_, Purger>) -> bool {
    ENDED_BY_FORK.store(false, Relaxed); // if it cannot be started, other frees need not try
    if cfg!(shuttle) {
        return true; // the threads of a model tick themselves
    }
    if os::first_thread_has_ended() {
        return false; // at its end the C library may take it for the last one, and call exit, even where another one has
    }
    if RUNS.load(SeqCst) == 0 {
        drop(purger.thread.take()); // it has ended
        // SAFETY: the body uses no argument.
        if let Ok(thread) = unsafe { os::spawn(body, null_mut(), &TASK) } {
            purger.thread = Some(thread);
            RUNS.store(1, SeqCst);
        }
    }
    RUNS.load(SeqCst) != 0
}

/// Whether the thread runs.
pub fn runs() -> bool {
    RUNS.load(Relaxed) != 0
}

/// Starts the thread again after a fork, if anything keeps memory.
pub fn resume() {
    if malloc_trim::has_begun() || !PURGER.lock().needs_no_tick() {
        ensure();
    }
}

/// Runs a tick for everything registered; returns whether the thread continues.
fn tick_all() -> bool {
    malloc_trim::tick();
    let purger = PURGER.lock();
    if STOP.load(SeqCst) != 0 {
        return false; // a fork waits for this thread
    }
    purger.registered().for_each(Registered::tick);
    let is_last = os::first_thread_has_ended(); // a process ends with the last thread of its program, which this is not
    if !is_last && (malloc_trim::has_begun() || !purger.needs_no_tick()) {
        return true;
    }
    // From now on, requests for fresh memory see that no thread runs, and start one.
    RUNS.store(0, SeqCst);
    if is_last || purger.needs_no_tick() {
        return false;
    }
    RUNS.store(1, SeqCst);
    true
}

extern "C" fn body(_: *mut c_void) -> *mut c_void {
    os::name_thread(c"firsttouch", &TASK);
    loop {
        os::wait(&STOP, 0, Some(TICK));
        if STOP.load(SeqCst) != 0 || !tick_all() {
            break;
        }
    }
    null_mut()
}

/// Runs a tick; for the model checker, whose threads do the purger's work.
#[cfg(shuttle)]
pub fn tick() {
    PURGER.lock().registered().for_each(Registered::tick);
}

/// Ends the thread, and holds the lock, without which none starts.
pub(crate) fn end_and_hold() {
    loop {
        PURGER.raw().hold();
        // SAFETY: the lock was acquired on the line above, and there is no other reference to the value.
        let purger = unsafe { PURGER.held() };
        let Some(thread) = purger.thread.take() else {
            STOP.store(0, SeqCst);
            RUNS.store(0, SeqCst);
            ENDED_BY_FORK.store(FREES_START.load(Relaxed), Relaxed);
            return;
        };
        STOP.store(1, SeqCst);
        // SAFETY: it is held, by this thread.
        unsafe { PURGER.raw().release() };
        os::wake(&STOP);
        drop(thread);
    }
}

/// Converts ticks of the background purger to epochs, of which `decay` spans a fixed number.
pub(crate) struct Clock {
    ticks_per_epoch: u32,
    /// Epochs after which idle memory is purged; `None` for never.
    pub(crate) decay_epochs: Option<u8>,
    ticks: AtomicU32,
    /// Without a background purger: milliseconds from the start to the last tick.
    last: AtomicU32,
    start: Instant,
}

impl Clock {
    pub(crate) fn new(decay: Option<Duration>) -> Self {
        let ticks = decay.map_or(0, |decay| decay.as_millis().div_ceil(TICK.as_millis()).min(u32::MAX.into()) as u32);
        let ticks_per_epoch = (ticks / DECAY_EPOCHS).max(1);
        Self {
            ticks_per_epoch,
            decay_epochs: decay.map(|_| ticks.div_ceil(ticks_per_epoch) as u8),
            ticks: AtomicU32::new(0),
            last: AtomicU32::new(0),
            start: Instant::now(),
        }
    }

    /// Whether a tick has passed since the last call that returned `true`.
    pub(crate) fn is_due(&self) -> bool {
        let now = self.start.elapsed().as_millis() as u32;
        let last = self.last.load(Relaxed);
        now.wrapping_sub(last) >= TICK.as_millis() as u32
            && self.last.compare_exchange(last, now, Relaxed, Relaxed).is_ok()
    }

    /// Counts a tick, which may begin an epoch.
    pub(crate) fn tick(&self) {
        self.ticks.fetch_add(1, Relaxed);
    }

    /// The number of the epoch.
    pub(crate) fn epoch(&self) -> u32 {
        self.ticks.load(Relaxed) / self.ticks_per_epoch
    }
}

/// Whose locks forks hold; some also keep memory, which every tick looks at. All functions are called under the purger's lock, so
/// they must call nothing that could wait for it.
pub trait Registered: AtFork {
    /// A tick has passed.
    fn tick(&self) {}
    /// Whether the purger has nothing to do for it, now or later.
    fn needs_no_tick(&self) -> bool {
        true
    }
    /// Purges all idle memory, as far as that runs no foreign code.
    fn trim_idle(&self) {}
}

/// A lock alone keeps no memory.
impl<T: Send> Registered for Lock<T> {}
