//! The thread that populates blocks.
//!
//! It runs while there are blocks on the list, and a little longer. It blocks all signals, allocates nothing, and is joined
//! before a fork.

use super::block::Block;
use super::known::{FAST, Known};
use super::list::{self, ROOM};
use super::node::{self, Preferred};
use super::seen;
use super::spare::{Spare, a_processor_is_idle};
use crate::os;
use crate::sync::lock::Lock;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How long the thread waits for another block.
const LINGER: Duration = Duration::from_millis(100);

/// The thread's handle. Held across a fork, so that no thread starts meanwhile.
static THREAD: Lock<Option<os::Thread>> = Lock::new(None);
static RUNS: AtomicBool = AtomicBool::new(false);
/// Changes when there is something new; the thread sleeps on it.
static NEWS: AtomicU32 = AtomicU32::new(0);
static STOP: AtomicBool = AtomicBool::new(false);
/// Whether the thread waits until a processor may be idle, and is not to be woken before.
static STANDS_ASIDE: AtomicBool = AtomicBool::new(false);
/// The thread's number at the kernel.
static TASK: AtomicU32 = AtomicU32::new(0);

/// Whether this machine can gain by it.
pub(crate) fn is_supported() -> bool {
    seen::prepare();
    node::prepare();
    !cfg!(shuttle) && os::BACKEND && os::processors() >= 2
}

/// Puts a fresh block on the list, whose pages have `page` bytes. The owner calls [`list::forget`] before it frees or shrinks
/// the block.
pub(crate) fn watch(block: Range<usize>, page: usize) {
    let granule = seen::granule(page);
    let whole = Block::new(block.clone(), granule);
    if !whole.is_worth_a_try() || FAST.load(Relaxed) && !whole.is_worth_more(Duration::ZERO) {
        return;
    }
    let Some(node) = node::of_this_thread() else { return };
    if !list::add(block, granule, node) {
        return;
    }
    NEWS.fetch_add(1, SeqCst);
    if !RUNS.load(SeqCst) {
        start();
    } else if !STANDS_ASIDE.load(SeqCst) {
        os::wake(&NEWS);
    }
}

#[cold]
fn start() {
    let Some(mut thread) = THREAD.try_lock() else { return }; // a fork, or somebody starts it
    if RUNS.load(SeqCst) {
        os::wake(&NEWS);
        return;
    }
    if !a_processor_is_idle(1) {
        return; // or the thread would take one from the program to find that out
    }
    if let Some(ended) = thread.take() {
        ended.join();
    }
    STOP.store(false, SeqCst);
    if let Ok(started) = os::spawn(body, &TASK) {
        *thread = Some(started);
        RUNS.store(true, SeqCst);
    }
}

/// Ends the thread before a fork; none starts until [`release`].
pub(crate) fn hold() {
    THREAD.hold();
    // SAFETY: the lock was taken on the line above.
    if let Some(thread) = unsafe { THREAD.held() }.take() {
        STOP.store(true, SeqCst);
        NEWS.fetch_add(1, SeqCst);
        os::wake(&NEWS);
        thread.join();
        RUNS.store(false, SeqCst);
    }
}

/// Ends [`hold`].
///
/// # Safety
/// The lock is held by `hold`.
pub(crate) unsafe fn release() {
    // SAFETY: `hold` acquired it, as the fork handlers (`purger`) do before they call this.
    unsafe { THREAD.release() }
}

/// What the thread works with.
struct Means {
    spare: Spare,
    preferred: Preferred,
}

extern "C" fn body(_: *mut c_void) -> *mut c_void {
    os::name_thread(c"fault-ahead", &TASK);
    let _ = os::sleep_exactly(); // or it wakes up a little late
    let mut known: [Option<Known>; ROOM] = [const { None }; ROOM];
    let mut used = Instant::now();
    let mut means = Means { spare: Spare::new(used), preferred: Preferred::new() };
    while !STOP.load(SeqCst) {
        let news = NEWS.load(SeqCst);
        let now = Instant::now();
        let aside = if list::is_empty() { None } else { means.spare.stands_aside(now) };
        STANDS_ASIDE.store(aside.is_some(), SeqCst);
        let turns = known.iter_mut().enumerate().filter_map(|(at, known)| turn(at, known, now, &mut means));
        let pause = if aside.is_some() { aside } else { turns.min() };
        if pause.is_some() {
            used = now;
        } else if now.duration_since(used) >= LINGER && leave() {
            break;
        }
        let pause = pause.unwrap_or(LINGER);
        if !pause.is_zero() {
            os::wait(&NEWS, news, Some(pause));
        }
    }
    FAST.store(false, Relaxed);
    null_mut()
}

/// Says that no thread runs any more, if there is no block. One that comes at this very moment goes without help.
fn leave() -> bool {
    let Some(_held) = THREAD.try_lock() else { return false }; // a fork waits for this thread, and stops it
    let idle = list::is_empty();
    if idle {
        RUNS.store(false, SeqCst);
    }
    idle
}

/// Goes on with the block in a slot; how long it can be left alone, if there is one.
fn turn(at: usize, known: &mut Option<Known>, now: Instant, means: &mut Means) -> Option<Duration> {
    let Some(entry) = list::entry(at) else {
        *known = None;
        return None;
    };
    let known = match known {
        Some(known) if known.number == entry.number => known,
        _ => known.insert(Known::new(&entry)),
    };
    list::work(at, &entry, || means.preferred.follow(entry.node).then(|| known.go_on(now, &mut means.spare)).flatten())
}
