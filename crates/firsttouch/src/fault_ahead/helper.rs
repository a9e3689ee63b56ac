//! The list of blocks, and the thread that populates them.
//!
//! Slots are taken, and given up, without a lock, since frees do it. The thread runs while there are blocks on the list,
//! and a little longer. It blocks all signals, allocates nothing, and is joined before a fork.

use super::MIN;
use super::block::Block;
use super::known::{FAST, Known};
use super::node::{self, Preferred};
use super::seen;
use super::spare::{Spare, a_processor_is_idle};
use crate::os;
use crate::sync::lock::Lock;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Blocks that are helped at the same time; more go without.
const ROOM: usize = 8;
/// The start of a slot that is being filled.
const CLAIMED: usize = 1;

/// How long the thread waits for another block.
const LINGER: Duration = Duration::from_millis(100);

/// A block on the list.
struct Slot {
    /// Its address; 0 where there is none.
    start: AtomicUsize,
    size: AtomicUsize,
    granule: AtomicUsize,
    /// Where its pages come from ([`node`]).
    node: AtomicUsize,
    /// Different for each block, as several may have had one address.
    number: AtomicU64,
}

static SLOTS: [Slot; ROOM] = [const {
    Slot {
        start: AtomicUsize::new(0),
        size: AtomicUsize::new(0),
        granule: AtomicUsize::new(0),
        node: AtomicUsize::new(node::ANY),
        number: AtomicU64::new(0),
    }
}; ROOM];
/// Slots that are not free.
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);
/// The address of the block that the thread works on.
static BUSY: AtomicUsize = AtomicUsize::new(0);

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

/// Puts a fresh block on the list, whose pages have `page` bytes. The owner calls [`forget`] before it frees or shrinks
/// the block.
pub(crate) fn watch(block: Range<usize>, page: usize) {
    let granule = seen::granule(page);
    let whole = Block::new(block.clone(), granule);
    if !whole.is_worth_a_try() || FAST.load(Relaxed) && !whole.is_worth_more(Duration::ZERO) {
        return;
    }
    let Some(node) = node::of_this_thread() else { return };
    for slot in &SLOTS {
        if slot.start.load(Relaxed) == 0 && slot.start.compare_exchange(0, CLAIMED, SeqCst, Relaxed).is_ok() {
            slot.size.store(block.len(), Relaxed);
            slot.granule.store(granule, Relaxed);
            slot.node.store(node, Relaxed);
            slot.number.store(LAST_NUMBER.fetch_add(1, Relaxed) + 1, Relaxed);
            TAKEN.fetch_add(1, SeqCst);
            slot.start.store(block.start, SeqCst);
            NEWS.fetch_add(1, SeqCst);
            if !RUNS.load(SeqCst) {
                start();
            } else if !STANDS_ASIDE.load(SeqCst) {
                os::wake(&NEWS);
            }
            return;
        }
    }
}

/// Takes a block off the list, if it is there. Nothing of it is populated afterwards.
#[inline]
pub(crate) fn forget(address: usize, size: usize) {
    if size >= MIN && TAKEN.load(SeqCst) > 0 {
        end(address);
    }
}

#[cold]
fn end(address: usize) {
    for slot in &SLOTS {
        if slot.start.load(Relaxed) == address && slot.start.compare_exchange(address, 0, SeqCst, Relaxed).is_ok() {
            TAKEN.fetch_sub(1, SeqCst);
        }
    }
    // The thread names the block before it looks whether the block is still on the list.
    while BUSY.load(SeqCst) == address {
        std::thread::yield_now();
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

/// Empties the list in a forked child, between [`hold`] and [`release`]: the memory of its parent's blocks is shared with the
/// parent, and another thread may have been entering one.
pub(crate) fn restart() {
    for slot in &SLOTS {
        slot.start.store(0, SeqCst);
    }
    TAKEN.store(0, SeqCst);
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
        let aside = if TAKEN.load(SeqCst) > 0 { means.spare.stands_aside(now) } else { None };
        STANDS_ASIDE.store(aside.is_some(), SeqCst);
        let turns = SLOTS.iter().zip(&mut known).filter_map(|(slot, known)| turn(slot, known, now, &mut means));
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
    let idle = TAKEN.load(SeqCst) == 0;
    if idle {
        RUNS.store(false, SeqCst);
    }
    idle
}

/// Goes on with the block in a slot; how long it can be left alone, if there is one.
fn turn(slot: &Slot, known: &mut Option<Known>, now: Instant, means: &mut Means) -> Option<Duration> {
    let start = slot.start.load(SeqCst);
    if start <= CLAIMED {
        *known = None;
        return None;
    }
    let number = slot.number.load(Relaxed);
    let known = match known {
        Some(known) if known.number == number => known,
        _ => known.insert(Known::new(number, start..start + slot.size.load(Relaxed), slot.granule.load(Relaxed))),
    };
    BUSY.store(start, SeqCst);
    let mut pause = None;
    if slot.start.load(SeqCst) == start && slot.number.load(SeqCst) == number {
        pause = if means.preferred.follow(slot.node.load(Relaxed)) { known.go_on(now, &mut means.spare) } else { None };
        if pause.is_none() && slot.start.compare_exchange(start, 0, SeqCst, Relaxed).is_ok() {
            TAKEN.fetch_sub(1, SeqCst);
        }
    }
    BUSY.store(0, SeqCst);
    pause
}
