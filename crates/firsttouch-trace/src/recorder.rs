//! The one recorder of a process. Telling it costs a short lock and 16 bytes; a thread of its own does the rest.
//!
//! Whoever gives memory back never waits for a file: where the ring is nearly full, those who ask for memory wait, and
//! only a ring that is full all the same loses what it is told, which the trace says. The thread is joined before a fork,
//! comes back with the next request, and uses no allocator. A forked child records nothing unless it begins anew.

use super::looks;
use super::output::Facts;
use super::reader::Totals;
use super::ring::{ROOM, Record, Ring, VALUE, kind};
use super::scribe::{MOST, Scribe, cut, records};
use firsttouch::os;
use firsttouch::sync::brief_lock::{BriefLock, Guard};
use firsttouch::sync::lock::Lock;
use std::cell::Cell;
use std::ffi::c_void;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

pub use super::pages::LARGE;

/// How long the thread sleeps: what a program that is killed may lose.
const TICK: Duration = Duration::from_millis(20);
/// How long a request waits for the disk before the recorder gives up.
const PATIENCE: Duration = Duration::from_secs(10);
/// The thread is woken when another part of the ring has filled.
const PART: usize = ROOM / 8;

struct State {
    thread: u32,
    threads: u32,
    sites: u32,
    runs: bool,
    helper: Option<os::Thread>,
}

// SAFETY: a thread's handle may be joined from any thread.
unsafe impl Send for State {}

static ON: AtomicBool = AtomicBool::new(false);
static STATE: BriefLock<State> = BriefLock::new(State { thread: 0, threads: 0, sites: 0, runs: false, helper: None });
static RING: Ring = Ring::new();
static SCRIBE: Lock<Option<Scribe>> = Lock::new(None);
static LOST: AtomicU64 = AtomicU64::new(0);
/// Counts calls for the thread, which sleeps on it.
static CALLS: AtomicU32 = AtomicU32::new(0);
static STOP: AtomicBool = AtomicBool::new(false);
static TASK: AtomicU32 = AtomicU32::new(0);
/// Counts traces begun, so that a thread's number belongs to one.
static TRACE: AtomicU32 = AtomicU32::new(0);
/// When the first trace of the process began, and when this one did, in microseconds after that.
static CLOCK: OnceLock<Instant> = OnceLock::new();
static BEGAN: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The trace and this thread's number in it.
    static ME: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Whether anything is recorded.
#[inline]
pub fn is_on() -> bool {
    ON.load(Relaxed)
}

fn clock() -> u64 {
    CLOCK.get_or_init(Instant::now).elapsed().as_micros() as u64
}

fn now() -> u64 {
    clock().saturating_sub(BEGAN.load(Relaxed))
}

impl State {
    /// Puts an event with all that belongs to it; how many records are put.
    #[inline]
    fn put(&mut self, detail: Option<Record>, event: Record, stamped: bool) {
        let trace = TRACE.load(Relaxed);
        let me = match ME.get() {
            (of, number) if of == trace => number,
            _ => self.number(trace),
        };
        let (mut all, mut count) = ([[0; 2]; MOST], 0);
        let mut add = |record| {
            all[count] = record;
            count += 1;
        };
        if me != self.thread {
            add([0, kind::THREAD << 60 | u64::from(me)]);
        }
        if stamped {
            add([0, kind::TIME << 60 | now()]);
        }
        if let Some(detail) = detail {
            add(detail);
        }
        add(event);
        // SAFETY: producers hold the lock of this state, and the ring is open while recording is on.
        match unsafe { RING.put(&all[..count]) } {
            Some(head) => {
                self.thread = me;
                if head / PART != (head - count) / PART {
                    call();
                }
            }
            None => {
                LOST.fetch_add(1, Relaxed);
            }
        }
    }

    #[cold]
    fn number(&mut self, trace: u32) -> u32 {
        let number = self.threads;
        self.threads += 1;
        ME.set((trace, number));
        number
    }

    #[cold]
    fn start(&mut self) {
        STOP.store(false, SeqCst);
        self.helper = os::spawn(body, &TASK).ok();
        self.runs = true; // without a thread, `ended` and those who wait write
    }
}

fn call() {
    CALLS.fetch_add(1, SeqCst);
    os::wake(&CALLS);
}

/// The state, for an event that may wait: there is room, and the thread runs.
#[inline]
fn waiting() -> Option<Guard<'static, State>> {
    if RING.used_at_most() > ROOM / 4 * 3 && RING.used() > ROOM / 4 * 3 {
        wait_for_room();
    }
    let mut state = STATE.lock();
    if !is_on() {
        return None;
    }
    if !state.runs {
        state.start();
    }
    Some(state)
}

#[cold]
fn wait_for_room() {
    let began = Instant::now();
    while is_on() && RING.used() > ROOM / 2 {
        call();
        if STATE.lock().helper.is_none() {
            drain(false);
        }
        os::wait(&LOST_SLEEP, 0, Some(Duration::from_millis(1)));
        if began.elapsed() > PATIENCE {
            ON.store(false, SeqCst); // the trace stays without its end
        }
    }
}

/// A word that never changes, to sleep on.
static LOST_SLEEP: AtomicU32 = AtomicU32::new(0);

/// A block below [`LARGE`] was given.
#[inline]
pub fn allocated(address: usize, size: usize, zeroed: bool) {
    if let Some(mut state) = waiting() {
        state.put(None, given(address, size, zeroed), false);
    }
}

/// A block of [`LARGE`] or more was given; `line` as [`line`] answered. It looks at the block's pages.
pub fn allocated_large(address: usize, size: usize, zeroed: bool, line: u32) {
    let present = looks::coming(address, size, zeroed, line);
    if let Some(mut state) = waiting() {
        let detail = [line.into(), kind::DETAIL << 60 | present & VALUE];
        state.put(Some(detail), given(address, size, zeroed), true);
    }
}

#[inline]
fn given(address: usize, size: usize, zeroed: bool) -> Record {
    let kind = if zeroed { kind::ZEROED } else { kind::ALLOCATE };
    [address as u64, kind << 60 | size as u64 & VALUE]
}

/// A block will be given back right after this. `size` may be wrong.
#[inline]
pub fn freeing(address: usize, size: usize) {
    if !is_on() {
        return;
    }
    let large = size >= LARGE;
    let there = if large { looks::going(address, size).map_or(0, |pages| pages + 1) } else { 0 };
    let mut state = STATE.lock();
    if is_on() {
        state.put(None, [address as u64, kind::FREE << 60 | there], large);
    }
}

/// A block is about to change its size.
pub fn moving(address: usize) {
    if let Some(mut state) = waiting() {
        state.put(None, [address as u64, kind::MOVE << 60], false);
    }
}

/// It has `size` bytes and lies here; nowhere where that failed.
pub fn moved(address: Option<usize>, size: usize) {
    if let Some(mut state) = waiting() {
        state.put(None, [address.unwrap_or(0) as u64, kind::MOVED << 60 | size as u64 & VALUE], size >= LARGE);
    }
}

/// Names a line of the program; its number, or zero.
pub fn line(file: &str, line: u32) -> u32 {
    let text = cut(file.as_bytes());
    let Some(mut state) = waiting() else { return 0 };
    if text.is_empty() || RING.used() + text.len() > ROOM {
        return 0;
    }
    // SAFETY: as in `put`; there is room for all of it, so that nothing is half told.
    let put = |record| unsafe { RING.put(&[record]) }.is_some();
    if !put([line.into(), kind::SITE << 60 | text.len() as u64]) || !records(text).all(put) {
        return 0;
    }
    state.sites += 1;
    state.sites
}

extern "C" fn body(_: *mut c_void) -> *mut c_void {
    os::name_thread(c"firsttouch-rec", &TASK);
    while !STOP.load(SeqCst) {
        let calls = CALLS.load(SeqCst);
        drain(true);
        if !STOP.load(SeqCst) {
            os::wait(&CALLS, calls, Some(TICK));
        }
    }
    null_mut()
}

fn drain(flush: bool) {
    let mut scribe = SCRIBE.lock();
    if let Some(scribe) = scribe.as_mut() {
        // SAFETY: consumers hold the scribe's lock, and the ring is open while there is a scribe.
        unsafe { scribe.drain(&RING, now()) };
        if flush {
            scribe.flush();
        }
        if scribe.failed() {
            ON.store(false, SeqCst);
        }
    }
}

/// Begins a trace in `file`, whose head says `facts`.
///
/// # Errors
/// Where one is being written already, or there is no memory for it.
pub fn begin(file: File, facts: &Facts) -> Result<(), Error> {
    static FORKS: Once = Once::new();
    FORKS.call_once(|| os::at_fork(before_fork, in_parent, in_child));
    let mut state = STATE.lock();
    let mut scribe = SCRIBE.lock();
    if is_on() || scribe.is_some() {
        return Err(Error::from(ErrorKind::AlreadyExists));
    }
    // SAFETY: recording is off, so nobody puts, and without a scribe nobody takes.
    if !unsafe { RING.open() } {
        return Err(Error::from(ErrorKind::OutOfMemory));
    }
    *scribe = Some(Scribe::new(file, facts).ok_or(ErrorKind::OutOfMemory)?);
    BEGAN.store(clock(), Relaxed);
    LOST.store(0, Relaxed);
    looks::forget();
    TRACE.fetch_add(1, Relaxed);
    (state.thread, state.threads, state.sites) = (0, 0, 0);
    ON.store(true, SeqCst);
    Ok(())
}

fn stop_helper(state: &mut State) {
    STOP.store(true, SeqCst);
    call();
    if let Some(helper) = state.helper.take() {
        helper.join();
    }
    state.runs = false;
}

/// Ends the trace with `facts`; its totals and bytes. `None` where none is being written.
///
/// # Errors
/// Where it could not be written as a whole.
pub fn end(facts: &Facts) -> Option<Result<(Totals, u64), Error>> {
    {
        let mut state = STATE.lock();
        ON.store(false, SeqCst);
        stop_helper(&mut state);
    }
    let mut scribe = SCRIBE.lock().take()?;
    // SAFETY: nobody puts any more, and the thread was joined.
    unsafe { scribe.drain(&RING, now()) };
    Some(scribe.finish(LOST.load(Relaxed), facts))
}

extern "C" fn before_fork() {
    STATE.hold();
    // SAFETY: the lock was taken on the line above.
    stop_helper(unsafe { STATE.held() });
    SCRIBE.hold();
}

extern "C" fn in_parent() {
    // SAFETY: `before_fork` took both.
    unsafe {
        SCRIBE.release();
        STATE.release();
    }
}

extern "C" fn in_child() {
    ON.store(false, SeqCst);
    // SAFETY: `before_fork` took both; this thread alone lives. The file is closed here and goes on in the parent.
    unsafe {
        *SCRIBE.held() = None;
        SCRIBE.release();
        STATE.release();
    }
}
