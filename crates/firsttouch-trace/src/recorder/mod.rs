//! The trace recorder of the process. An event takes a short lock and 16 bytes in a ring; a thread of its own writes
//! the file.
//!
//! `free` never waits for the disk: when the ring is nearly full, requests for memory wait instead, and when it is full
//! all the same, events are lost and counted. The writer thread uses no allocator, is joined before a fork and restarted
//! by the next request. A forked child does not record unless it starts a trace of its own.

mod block_table;
mod mapped_vec;
mod producer;
mod residency;
mod ring;
mod sampling;
mod writer;

pub use residency::LARGE_SIZE;

use crate::event::{Metadata, Totals};
use firsttouch::os;
use firsttouch::sync::brief_lock::{BriefLock, Guard};
use firsttouch::sync::lock::Lock;
use producer::{Producer, now};
use ring::{CAPACITY, Record, Ring, record};
use std::ffi::c_void;
use std::fs::File;
use std::hint::black_box;
use std::io::{Error, ErrorKind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};
use writer::Writer;

/// How often the writer thread flushes: how much a killed program may lose.
const FLUSH_INTERVAL: Duration = Duration::from_millis(20);
/// How long a request waits for the disk before recording is given up.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Why the end of the run is missing then.
const TOO_SLOW: &str = "the disk took longer than 10 seconds";

struct RecorderState {
    producer: Producer,
    /// Whether the writer thread was started, even if that failed.
    started: bool,
    thread: Option<os::Thread>,
}

// SAFETY: a thread handle may be joined from any thread.
unsafe impl Send for RecorderState {}

static RECORDING: AtomicBool = AtomicBool::new(false);
static STATE: BriefLock<RecorderState> =
    BriefLock::new(RecorderState { producer: Producer::new(), started: false, thread: None });
static RING: Ring = Ring::new();
static WRITER: Lock<Option<Writer>> = Lock::new(None);
/// Incremented to wake the writer thread, which sleeps on it.
static WAKE_UPS: AtomicU32 = AtomicU32::new(0);
static STOP: AtomicBool = AtomicBool::new(false);
static TASK: AtomicU32 = AtomicU32::new(0);

/// Returns whether a trace is being recorded.
#[inline]
pub fn is_recording() -> bool {
    RECORDING.load(Relaxed)
}

impl RecorderState {
    #[inline]
    fn push(&mut self, detail: Option<Record>, event: Record, timed: bool) {
        // SAFETY: this state is locked, and the ring is open while recording is on.
        if unsafe { self.producer.push(&RING, detail, event, timed) } {
            wake_writer();
        }
    }

    #[cold]
    fn start_thread(&mut self) {
        STOP.store(false, SeqCst);
        self.thread = os::spawn(writer_thread, &TASK).ok();
        self.started = true; // without a thread, waiting requests and `stop` write
    }

    fn stop_thread(&mut self) {
        STOP.store(true, SeqCst);
        wake_writer();
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
        self.started = false;
    }
}

fn wake_writer() {
    WAKE_UPS.fetch_add(1, SeqCst);
    os::wake(&WAKE_UPS);
}

/// Locks the state for an event that may wait until there is room; `None` if recording is off.
#[inline]
fn lock_with_room() -> Option<Guard<'static, RecorderState>> {
    if RING.max_len() > CAPACITY / 4 * 3 && RING.len() > CAPACITY / 4 * 3 {
        wait_for_room();
    }
    let mut state = STATE.lock();
    if !is_recording() {
        return None;
    }
    if !state.started {
        state.start_thread();
    }
    Some(state)
}

#[cold]
fn wait_for_room() {
    static NEVER_WOKEN: AtomicU32 = AtomicU32::new(0);
    let began = Instant::now();
    while is_recording() && RING.len() > CAPACITY / 2 {
        wake_writer();
        if STATE.lock().thread.is_none() {
            drain(false);
        }
        os::wait(&NEVER_WOKEN, 0, Some(Duration::from_millis(1)));
        if began.elapsed() > MAX_WAIT {
            RECORDING.store(false, SeqCst); // the trace stays without an end mark
        }
    }
}

/// Records the allocation of a block smaller than [`LARGE_SIZE`].
#[inline]
pub fn on_alloc(address: usize, size: usize, zeroed: bool) {
    if let Some(mut state) = lock_with_room() {
        state.push(None, alloc_record(address, size, zeroed), false);
    }
}

/// Records the allocation of a block of at least [`LARGE_SIZE`], and queries its pages. `site` is a number returned by
/// [`add_site`], or 0.
pub fn on_alloc_large(address: usize, size: usize, zeroed: bool, site: u32) {
    let present = sampling::on_alloc(address, size, zeroed, site);
    if let Some(mut state) = lock_with_room() {
        let detail = record::pack(site.into(), record::DETAIL, present);
        state.push(Some(detail), alloc_record(address, size, zeroed), true);
    }
}

#[inline]
fn alloc_record(address: usize, size: usize, zeroed: bool) -> Record {
    let kind = if zeroed { record::ALLOCATE_ZEROED } else { record::ALLOCATE };
    record::pack(address as u64, kind, size as u64)
}

/// Records that a block is about to be freed. `size` need not be exact.
#[inline]
pub fn on_free(address: usize, size: usize) {
    if !is_recording() {
        return;
    }
    let large = size >= LARGE_SIZE;
    let resident = if large { sampling::on_free(address, size).map_or(0, |pages| pages + 1) } else { 0 };
    let mut state = STATE.lock();
    if is_recording() {
        state.push(None, record::pack(address as u64, record::FREE, resident), large);
    }
}

/// Records that a block is about to be resized. [`on_resize_end`] must follow in the same thread.
pub fn on_resize_begin(address: usize) {
    if let Some(mut state) = lock_with_room() {
        state.push(None, record::pack(address as u64, record::RESIZE_BEGIN, 0), false);
    }
}

/// Records that a resize has ended: the block is now at `address`, or is unchanged if that is `None`.
pub fn on_resize_end(address: Option<usize>, size: usize) {
    if let Some(mut state) = lock_with_room() {
        let event = record::pack(address.unwrap_or(0) as u64, record::RESIZE_END, size as u64);
        state.push(None, event, size >= LARGE_SIZE);
    }
}

/// Adds a source line to the trace and returns its number, or 0 if it cannot be added.
pub fn add_site(file: &str, line: u32) -> u32 {
    let Some(mut state) = lock_with_room() else { return 0 };
    // SAFETY: as in `RecorderState::push`.
    unsafe { state.producer.push_site(&RING, file, line) }
}

extern "C" fn writer_thread(_: *mut c_void) -> *mut c_void {
    os::name_thread(c"firsttouch-rec", &TASK);
    while !STOP.load(SeqCst) {
        let wake_ups = WAKE_UPS.load(SeqCst);
        drain(true);
        if !STOP.load(SeqCst) {
            os::wait(&WAKE_UPS, wake_ups, Some(FLUSH_INTERVAL));
        }
    }
    null_mut()
}

fn drain(flush: bool) {
    let mut writer = WRITER.lock();
    if let Some(writer) = writer.as_mut() {
        // SAFETY: consumers hold the writer's lock, and the ring is open while there is a writer.
        unsafe { writer.drain(&RING, now()) };
        if flush {
            writer.flush();
        }
        if writer.failed() {
            RECORDING.store(false, SeqCst);
        }
    }
}

/// Starts a trace in `file`, with `metadata` in its header.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if a trace is being recorded already, [`ErrorKind::OutOfMemory`] if there is no memory.
pub fn start(file: File, metadata: &Metadata) -> Result<(), Error> {
    black_box(&AT_LOAD);
    let mut state = STATE.lock();
    let mut writer = WRITER.lock();
    if is_recording() || writer.is_some() {
        return Err(Error::from(ErrorKind::AlreadyExists));
    }
    // SAFETY: recording is off, so no thread pushes, and without a writer none consumes.
    if !unsafe { RING.open() } {
        return Err(Error::from(ErrorKind::OutOfMemory));
    }
    *writer = Some(Writer::new(file, metadata).ok_or(ErrorKind::OutOfMemory)?);
    sampling::reset();
    state.producer.start();
    RECORDING.store(true, SeqCst);
    Ok(())
}

/// Ends the trace with `metadata`. Returns its totals and its size in bytes, or `None` if none is being recorded.
///
/// # Errors
/// If the trace could not be written completely.
pub fn stop(metadata: &Metadata) -> Option<Result<(Totals, u64), Error>> {
    let (mut writer, lost, given_up) = {
        let mut state = STATE.lock(); // until the ring is empty: another thread may be about to start the next trace
        let given_up = !RECORDING.swap(false, SeqCst);
        state.stop_thread();
        let mut writer = WRITER.lock().take()?;
        // SAFETY: recording is off, the writer thread was joined, and no other has a writer.
        unsafe { writer.drain(&RING, now()) };
        (writer, state.producer.lost(), given_up)
    };
    if given_up && !writer.failed() {
        writer.flush();
        return Some(Err(Error::new(ErrorKind::TimedOut, TOO_SLOW)));
    }
    Some(writer.finish(lost, metadata))
}

/// Registered by the loader, as the handlers of the purger are, and after those: before a fork it comes first.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array.00099"))]
static AT_LOAD: extern "C" fn() = watch_forks;

extern "C" fn watch_forks() {
    os::at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
}

extern "C" fn before_fork() {
    STATE.hold();
    // SAFETY: the lock was taken on the line above.
    unsafe { STATE.held() }.stop_thread();
    WRITER.hold();
}

extern "C" fn after_fork_in_parent() {
    // SAFETY: `before_fork` took both locks.
    unsafe {
        WRITER.release();
        STATE.release();
    }
}

extern "C" fn after_fork_in_child() {
    RECORDING.store(false, SeqCst);
    // SAFETY: `before_fork` took both locks, and no other thread exists. The parent keeps its own descriptor of the file.
    unsafe {
        *WRITER.held() = None;
        WRITER.release();
        STATE.release();
    }
}
