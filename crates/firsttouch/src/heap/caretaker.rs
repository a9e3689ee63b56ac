//! The caretaker: one thread that ages, bounds and gives back the idle memory of all pools, and the code around forks.
//!
//! It starts with the first memory a pool takes, since a free may not start it, and ends when no pool holds any. It
//! blocks all signals and uses no allocator of its own accord. Before a fork it is joined and idle memory is given back:
//! written again it would be copied. It restarts with the next memory taken, or with [`resume`].
//!
//! An upstream may run anybody's code, which may wait for other threads, call this library, or fork. So whatever has to
//! be asked of one is an [`Errand`]: done with no lock held and never inside a fork, on a ward that its own reference
//! keeps alive. While the thread is away on an errand a fork does not wait for it.

use crate::failure;
use crate::os;
use crate::sync::lock::Lock;
use crate::vm::claim;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Once};
use std::time::Duration;

/// Time between two ticks.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Somebody whose idle memory is looked after. All functions are called under the caretaker's lock, so they may call
/// nobody who could wait for it: what has to be asked of an upstream is an [`Errand`].
pub trait Ward: Sync {
    /// A tick has passed; what is to be asked of an upstream now.
    fn tick(&self) -> Option<Arc<dyn Errand>> {
        None
    }
    /// Whether ticks age what it keeps: they pause while somebody measures.
    fn ages(&self) -> bool {
        true
    }
    /// Whether there is nothing to look after.
    fn rests(&self) -> bool {
        true
    }
    /// Gives all idle memory back, as far as that runs no code but this library's.
    fn cool(&self) {}
    /// What gives back the rest of it.
    fn errand(&self) -> Option<Arc<dyn Errand>> {
        None
    }
    /// Takes all locks.
    fn hold(&self);
    /// Ends `hold`.
    ///
    /// # Safety
    /// The locks are held by `hold`.
    unsafe fn release(&self);
}

/// What has to be asked of an upstream. It keeps its ward alive; where it was the last to do so, the ward ends here.
pub trait Errand: Send + Sync {
    /// Gives back what is too old or too much, or all that is idle.
    fn run(&self, all: bool);
}

struct Entry {
    /// Rises from entry to entry, so that a round goes on where it was, whoever came or left meanwhile.
    number: u64,
    ward: &'static dyn Ward,
}

struct Care {
    wards: Vec<Entry>,
    last: u64,
    thread: Option<os::Thread>,
    /// Whether the thread is on an errand, for as long as that takes. It holds no lock of ours then, or only as any
    /// thread that uses an allocator does.
    away: bool,
}

impl Care {
    /// The next errand behind `number`, which moves on.
    fn next(&self, number: &mut u64, ask: impl Fn(&dyn Ward) -> Option<Arc<dyn Errand>>) -> Option<Arc<dyn Errand>> {
        let at = self.wards.partition_point(|entry| entry.number <= *number);
        self.wards[at..].iter().find_map(|entry| {
            *number = entry.number;
            ask(entry.ward)
        })
    }

    fn rests(&self) -> bool {
        self.wards.iter().all(|entry| entry.ward.rests())
    }
}

// SAFETY: a thread's handle may be joined from any thread.
unsafe impl Send for Care {}

/// Held from before a fork until after it: where threads fork at once, one would wait for the caretaker and the other
/// go on without it.
static FORKING: Lock<()> = Lock::new(());
static CARE: Lock<Care> = Lock::new(Care { wards: Vec::new(), last: 0, thread: None, away: false });
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
pub unsafe fn enter(ward: *const dyn Ward) {
    static FORKS: Once = Once::new();
    FORKS.call_once(|| os::at_fork(before_fork, after_fork, after_fork_in_child));
    let mut care = CARE.lock();
    care.last += 1;
    let number = care.last;
    // SAFETY: the caller's promise.
    care.wards.push(Entry { number, ward: unsafe { &*ward } });
}

/// The same for one that never leaves.
pub(crate) fn enter_static(ward: &'static dyn Ward) {
    // SAFETY: it stays where it is.
    unsafe { enter(ward) }
}

/// Looks after `ward` no more.
pub fn leave(ward: *const dyn Ward) {
    CARE.lock().wards.retain(|other| !std::ptr::addr_eq(other.ward, ward));
}

/// Makes sure that the thread runs; whether it does. Where it can't be had, pools tick as they are used.
#[inline]
pub fn ensure() -> bool {
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
pub fn rest(rests: bool) {
    RESTS.store(rests, Relaxed);
}

/// Starts the thread again after a fork, if there is something to look after.
pub fn resume() {
    let rests = CARE.lock().rests();
    if !rests {
        ensure();
    }
}

/// Gives back all that is idle over upstreams that may run other code, which [`before_fork`] can't do: to be called
/// before a fork, by whoever knows that it comes. Nobody's lock is held.
pub fn cool() {
    let mut number = 0;
    loop {
        let errand = CARE.lock().next(&mut number, |ward| ward.errand());
        let Some(errand) = errand else { return };
        errand.run(true);
    }
}

/// A tick passes for all wards; whether the thread goes on. `thread` is whether the caretaker's own thread asks, which a
/// fork may wait for.
fn look_round(thread: bool) -> bool {
    let mut number = 0;
    loop {
        let mut care = CARE.lock();
        if thread {
            care.away = false;
            if STOP.load(SeqCst) != 0 {
                return false; // a fork waits for this thread
            }
        }
        let rests = RESTS.load(Relaxed);
        let due = |ward: &dyn Ward| if rests && ward.ages() { None } else { ward.tick() };
        if let Some(errand) = care.next(&mut number, due) {
            care.away |= thread;
            drop(care);
            errand.run(false);
            continue;
        }
        if !thread || !care.rests() {
            return true;
        }
        // Whoever takes memory after this look sees that nobody runs, and starts another.
        RUNS.store(0, SeqCst);
        if care.rests() {
            return false;
        }
        RUNS.store(1, SeqCst);
        return true;
    }
}

extern "C" fn body(_: *mut c_void) -> *mut c_void {
    os::name_thread(c"firsttouch", &TASK);
    loop {
        os::wait(&STOP, 0, Some(TICK));
        if STOP.load(SeqCst) != 0 || !look_round(true) {
            break;
        }
    }
    null_mut()
}

/// For the model checker, whose threads do the caretaker's work: a tick passes for all.
#[cfg(shuttle)]
pub fn tick() {
    look_round(false);
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
        let care = unsafe { CARE.held() };
        // On an errand it may wait for this very thread. It stays, like any thread of the program's.
        if care.away {
            break;
        }
        let Some(thread) = care.thread.take() else {
            STOP.store(0, SeqCst);
            RUNS.store(0, SeqCst);
            break;
        };
        STOP.store(1, SeqCst); // under the lock: it does not go on an errand any more
        // SAFETY: it is held, by this thread.
        unsafe { CARE.release() };
        os::wake(&STOP);
        thread.join();
    }
    // Nobody runs but on an errand, and nobody can be started while the lock is held.
    // SAFETY: the lock is held until `after_fork`.
    let wards = unsafe { &CARE.held().wards };
    wards.iter().for_each(|entry| entry.ward.cool());
    wards.iter().for_each(|entry| entry.ward.hold());
    claim::hold();
    failure::hold();
}

extern "C" fn after_fork() {
    // SAFETY: `before_fork` took these locks, in the reverse order; in the child its copy of this thread holds them.
    unsafe {
        failure::release();
        claim::release();
        CARE.held().wards.iter().for_each(|entry| entry.ward.release());
        CARE.release();
        FORKING.release();
    }
}

extern "C" fn after_fork_in_child() {
    // SAFETY: `before_fork` took the lock, and no other thread came along.
    let care = unsafe { CARE.held() };
    if std::mem::take(&mut care.away) {
        care.thread = None; // a number, and nobody's here
        RUNS.store(0, SeqCst);
    }
    after_fork();
}
