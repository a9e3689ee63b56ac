//! The caretaker: one thread that ages, bounds and gives back the idle memory of all pools, and the code around forks.
//!
//! It starts with the first memory a pool takes, since a free may not start it, and ends when no pool holds any. It
//! blocks all signals and uses no allocator. Before a fork it is joined and idle memory is given back: written again
//! it would be copied. It restarts with the next memory taken, or with [`resume`].

use super::claim;
use super::lock::Lock;
use crate::failure;
use crate::os;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

/// Time between two ticks.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Somebody whose idle memory is looked after.
pub(crate) trait Ward: Sync {
    /// A tick has passed.
    fn tick(&self);
    /// Whether ticks age what it keeps: they pause while somebody measures.
    fn ages(&self) -> bool {
        true
    }
    /// Whether there is nothing to look after.
    fn rests(&self) -> bool;
    /// Gives all idle memory back.
    fn cool(&self);
    /// Takes all locks.
    fn hold(&self);
    /// Ends `hold`.
    ///
    /// # Safety
    /// The locks are held by `hold`.
    unsafe fn release(&self);
}

struct Care {
    wards: Vec<&'static dyn Ward>,
    thread: Option<os::Thread>,
}

// SAFETY: a thread's handle may be joined from any thread.
unsafe impl Send for Care {}

/// Held from before a fork until after it: where threads fork at once, one would wait for the caretaker and the other
/// go on without it.
static FORKING: Lock<()> = Lock::new(());
static CARE: Lock<Care> = Lock::new(Care { wards: Vec::new(), thread: None });
/// Whether the thread runs.
static RUNS: AtomicU32 = AtomicU32::new(0);
/// Whether it is asked to end; it sleeps on this word.
static STOP: AtomicU32 = AtomicU32::new(0);
/// Whether nothing is aged and given back now.
static RESTS: AtomicBool = AtomicBool::new(false);
/// The thread's number at the kernel.
static TASK: AtomicU32 = AtomicU32::new(0);

/// Looks after `ward` from now on.
///
/// # Safety
/// The ward lives until [`leave`].
pub(crate) unsafe fn enter(ward: *const dyn Ward) {
    static FORKS: Once = Once::new();
    FORKS.call_once(|| os::at_fork(before_fork, after_fork, after_fork));
    // SAFETY: the caller's promise.
    CARE.lock().wards.push(unsafe { &*ward });
}

/// The same for one that never leaves.
pub(crate) fn enter_static(ward: &'static dyn Ward) {
    // SAFETY: it stays where it is.
    unsafe { enter(ward) }
}

/// Looks after `ward` no more.
pub(crate) fn leave(ward: *const dyn Ward) {
    CARE.lock().wards.retain(|&other| !std::ptr::addr_eq(other, ward));
}

/// Makes sure that the thread runs; whether it does. Where it can't be had, pools tick as they are used.
#[inline]
pub(crate) fn ensure() -> bool {
    RUNS.load(SeqCst) != 0 || start()
}

#[cold]
fn start() -> bool {
    if cfg!(shuttle) {
        return true; // the model's threads tick themselves
    }
    let mut care = CARE.lock();
    if RUNS.load(SeqCst) == 0 {
        if let Some(ended) = care.thread.take() {
            ended.join();
        }
        if let Ok(thread) = os::spawn(body, &TASK) {
            care.thread = Some(thread);
            RUNS.store(1, SeqCst);
        }
    }
    RUNS.load(SeqCst) != 0
}

/// Lets time stand still for idle memory, or pass again: while somebody measures, what is recycled must not depend on
/// the clock. Bounds on idle memory hold all the same, as requests see to them.
pub(crate) fn rest(rests: bool) {
    RESTS.store(rests, Relaxed);
}

/// Starts the thread again after a fork, if there is something to look after.
pub fn resume() {
    let rests = CARE.lock().wards.iter().all(|ward| ward.rests());
    if !rests {
        ensure();
    }
}

extern "C" fn body(_: *mut c_void) -> *mut c_void {
    os::name_thread(c"firsttouch", &TASK);
    loop {
        os::wait(&STOP, 0, Some(TICK));
        if STOP.load(SeqCst) != 0 {
            break;
        }
        let care = CARE.lock();
        let rests = RESTS.load(Relaxed);
        for ward in care.wards.iter().filter(|ward| !(rests && ward.ages())) {
            ward.tick();
        }
        if care.wards.iter().all(|ward| ward.rests()) {
            // Whoever takes memory after this look sees that nobody runs, and starts another.
            RUNS.store(0, SeqCst);
            if care.wards.iter().all(|ward| ward.rests()) {
                break;
            }
            RUNS.store(1, SeqCst);
        }
    }
    null_mut()
}

/// For the model checker, whose threads do the caretaker's work: a tick passes for all.
#[cfg(shuttle)]
pub fn tick() {
    CARE.lock().wards.iter().for_each(|ward| ward.tick());
}

/// For the model checker: all that happens around a fork.
#[cfg(shuttle)]
pub fn fork() {
    before_fork();
    after_fork();
}

extern "C" fn before_fork() {
    FORKING.hold();
    loop {
        CARE.hold();
        // SAFETY: the lock was taken on the line above and nobody else has a reference to the value.
        let thread = unsafe { CARE.held().thread.take() };
        let Some(thread) = thread else { break };
        STOP.store(1, SeqCst);
        // SAFETY: it is held, by this thread.
        unsafe { CARE.release() };
        os::wake(&STOP);
        thread.join();
    }
    // Nobody runs, and nobody can be started while the lock is held.
    STOP.store(0, SeqCst);
    RUNS.store(0, SeqCst);
    // SAFETY: the lock is held until `after_fork`.
    let wards = unsafe { &CARE.held().wards };
    wards.iter().for_each(|ward| ward.cool());
    wards.iter().for_each(|ward| ward.hold());
    claim::hold();
    failure::hold();
}

extern "C" fn after_fork() {
    // SAFETY: `before_fork` took these locks, in the reverse order; in the child its copy of this thread holds them.
    unsafe {
        failure::release();
        claim::release();
        CARE.held().wards.iter().for_each(|ward| ward.release());
        CARE.release();
        FORKING.release();
    }
}
