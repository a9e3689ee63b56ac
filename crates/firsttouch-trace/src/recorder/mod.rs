//! The trace recorder of the process. An event takes a short lock and a record in a buffer; a thread of its own takes the
//! full buffer in exchange for an empty one, and writes the file.
//!
//! `free` never waits for the disk: when the buffer is nearly full, requests for memory wait instead, and when it is full
//! all the same, events are lost and counted. The writer thread is joined before a fork and restarted by the next
//! request. A forked child does not record unless it starts a trace of its own.
//!
//! Locks are taken in this order: `THREAD`, `WRITER`, `EVENTS`.

mod writer;

use crate::format::{LARGE_SIZE, Metadata};
use firsttouch::os;
use firsttouch::sync::brief_lock::{BriefLock, Guard};
use firsttouch::sync::first::First;
use firsttouch::sync::lock::Lock;
use std::ffi::c_void;
use std::fs::File;
use std::hint::black_box;
use std::io::{Error, ErrorKind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};
use writer::Writer;

/// The records of either buffer: 4 MiB.
const CAPACITY: usize = 1 << 17;
/// The maximum number of records of one event: its time, and the event itself.
const MAX_RECORDS: usize = 2;
/// The writer is woken whenever another such part of the buffer has filled.
const WAKE_INTERVAL: usize = CAPACITY / 4;
/// How often the writer thread flushes: how much a killed program may lose.
const FLUSH_INTERVAL: Duration = Duration::from_millis(20);
/// How long a request waits for the disk before recording is given up.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Why the end of the run is missing then.
const TOO_SLOW: &str = "the disk took longer than 10 seconds";

/// What the program asked for.
#[derive(Clone, Copy)]
pub struct Request {
    /// Bytes.
    pub size: usize,
    /// Whether they are to read as zero.
    pub zeroed: bool,
    /// Whether they are for an array of NumPy's, and not for a buffer of Python's.
    pub is_array: bool,
    /// A number returned by [`add_site`], or 0.
    pub site: u32,
}

/// What the threads of the program tell the writer, in the order in which it happened.
enum Record {
    /// A block was allocated.
    Allocate { address: usize, request: Request },
    /// A block is freed.
    Free { address: usize },
    /// A block is about to be resized.
    ResizeBegin { address: usize },
    /// The block at `old` was resized, and is now at this address; zero if that failed.
    ResizeEnd { old: usize, address: usize, request: Request },
    /// All following records are from this time or later (microseconds).
    Time(u64),
    /// A source line.
    Site { line: u32, names: Box<[String; 2]> },
}

/// The events that the writer has not taken yet.
struct Events {
    /// Never grows beyond [`CAPACITY`], which it has while a trace is recorded.
    records: Vec<Record>,
    sites: u32,
    lost: u64,
}

static RECORDING: AtomicBool = AtomicBool::new(false);
static EVENTS: BriefLock<Events> = BriefLock::new(Events { records: Vec::new(), sites: 0, lost: 0 });
static WRITER: Lock<Option<Writer>> = Lock::new(None);
static THREAD: Lock<Option<WriterThread>> = Lock::new(None);
/// Whether the writer thread was started, even if that failed.
static STARTED: AtomicBool = AtomicBool::new(false);
/// Incremented to wake the writer thread, which sleeps on it.
static WAKE_UPS: AtomicU32 = AtomicU32::new(0);
static STOP: AtomicBool = AtomicBool::new(false);
static TASK: AtomicU32 = AtomicU32::new(0);
/// When the first trace of the process was started, and when this one was, in microseconds after that.
static CLOCK: First<Instant> = First::new();
static BEGUN: AtomicU64 = AtomicU64::new(0);

struct WriterThread(os::Thread);

// SAFETY: a thread handle may be joined from any thread.
unsafe impl Send for WriterThread {}

/// Returns whether a trace is being recorded.
#[inline]
pub fn is_recording() -> bool {
    RECORDING.load(Relaxed)
}

fn clock() -> u64 {
    CLOCK.get_or_make(Instant::now).elapsed().as_micros() as u64
}

/// Returns the microseconds since the start of the trace.
fn now() -> u64 {
    clock().saturating_sub(BEGUN.load(Relaxed))
}

impl Events {
    /// Adds an event and, if it is about a large block, its time.
    #[inline]
    fn push(&mut self, event: Record, size: usize) {
        let before = self.records.len();
        if before + MAX_RECORDS > CAPACITY {
            self.lost += 1;
            return;
        }
        if size as u64 >= LARGE_SIZE {
            self.records.push(Record::Time(now()));
        }
        self.records.push(event);
        if self.records.len() / WAKE_INTERVAL != before / WAKE_INTERVAL {
            wake_writer();
        }
    }
}

fn wake_writer() {
    WAKE_UPS.fetch_add(1, SeqCst);
    os::wake(&WAKE_UPS);
}

/// Locks the events for one that may wait until there is room; `None` if recording is off.
#[inline]
fn lock_with_room() -> Option<Guard<'static, Events>> {
    if !STARTED.load(Relaxed) {
        start_thread();
    }
    let mut events = EVENTS.lock();
    while is_recording() && events.records.len() > CAPACITY / 4 * 3 {
        drop(events);
        wait_for_room();
        events = EVENTS.lock();
    }
    is_recording().then_some(events)
}

#[cold]
fn wait_for_room() {
    static NEVER_WOKEN: AtomicU32 = AtomicU32::new(0);
    let began = Instant::now();
    while is_recording() && EVENTS.lock().records.len() > CAPACITY / 4 * 3 {
        wake_writer();
        if THREAD.lock().is_none() {
            drain(false);
        }
        os::wait(&NEVER_WOKEN, 0, Some(Duration::from_millis(1)));
        if began.elapsed() > MAX_WAIT {
            RECORDING.store(false, SeqCst); // the trace stays without an end mark
        }
    }
}

/// Records the allocation of a block.
#[inline]
pub fn on_alloc(address: usize, request: Request) {
    if let Some(mut events) = lock_with_room() {
        events.push(Record::Allocate { address, request }, request.size);
    }
}

/// Records that a block is about to be freed. `size` need not be exact.
#[inline]
pub fn on_free(address: usize, size: usize) {
    if !is_recording() {
        return;
    }
    let mut events = EVENTS.lock();
    if is_recording() {
        events.push(Record::Free { address }, size);
    }
}

/// Records that a block is about to be resized. [`on_resize_end`] must follow.
pub fn on_resize_begin(address: usize) {
    if let Some(mut events) = lock_with_room() {
        events.push(Record::ResizeBegin { address }, 0);
    }
}

/// Records that the resize of the block at `old` has ended: it is now at `address`, or is unchanged if that is `None`.
pub fn on_resize_end(old: usize, address: Option<usize>, request: Request) {
    if let Some(mut events) = lock_with_room() {
        events.push(Record::ResizeEnd { old, address: address.unwrap_or(0), request }, request.size);
    }
}

/// Adds a source line to the trace and returns its number, or 0 if it cannot be added.
pub fn add_site(file: &str, line: u32, library: &str) -> u32 {
    let Some(mut events) = lock_with_room() else { return 0 };
    if file.is_empty() || events.records.len() == CAPACITY {
        return 0;
    }
    events.records.push(Record::Site { line, names: Box::new([file.into(), library.into()]) });
    events.sites += 1;
    events.sites
}

#[cold]
fn start_thread() {
    let mut thread = THREAD.lock();
    if is_recording() && !STARTED.swap(true, SeqCst) {
        STOP.store(false, SeqCst);
        *thread = os::spawn(writer_thread, &TASK).ok().map(WriterThread); // without one, waiting requests and `stop` write
    }
}

fn stop_thread(thread: &mut Option<WriterThread>) {
    STOP.store(true, SeqCst);
    wake_writer();
    if let Some(WriterThread(thread)) = thread.take() {
        thread.join();
    }
    STARTED.store(false, SeqCst);
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
        writer.take(&mut EVENTS.lock().records);
        writer.encode(now());
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
    let _thread = THREAD.lock();
    let mut writer = WRITER.lock();
    if is_recording() || writer.is_some() {
        return Err(Error::from(ErrorKind::AlreadyExists));
    }
    let (records, spare) = (buffer()?, buffer()?);
    *writer = Some(Writer::new(file, metadata, spare));
    let mut events = EVENTS.lock();
    BEGUN.store(clock(), Relaxed);
    *events = Events { records, sites: 0, lost: 0 };
    RECORDING.store(true, SeqCst);
    Ok(())
}

/// Returns an empty buffer, faulted in so that it does not show as growth of the program.
fn buffer() -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    records.try_reserve_exact(CAPACITY).map_err(|_| Error::from(ErrorKind::OutOfMemory))?;
    records.resize_with(CAPACITY, || Record::Time(0));
    records.clear();
    Ok(records)
}

/// What a finished trace has.
pub struct Recorded {
    /// Number of events.
    pub events: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of events that were lost.
    pub lost: u64,
}

/// Ends the trace with `metadata`; `None` if none is being recorded.
///
/// # Errors
/// If the trace could not be written completely.
pub fn stop(metadata: &Metadata) -> Option<Result<Recorded, Error>> {
    let mut thread = THREAD.lock(); // to the end: another thread may be about to start the next trace
    let given_up = !RECORDING.swap(false, SeqCst);
    stop_thread(&mut thread);
    let mut writer = WRITER.lock().take()?;
    let lost = {
        let mut events = EVENTS.lock();
        writer.take(&mut events.records);
        events.records = Vec::new();
        events.lost
    };
    writer.encode(now());
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
    THREAD.hold();
    // SAFETY: the lock was taken on the line above.
    stop_thread(unsafe { THREAD.held() });
    WRITER.hold();
    EVENTS.hold();
}

extern "C" fn after_fork_in_parent() {
    // SAFETY: `before_fork` took the three locks.
    unsafe {
        EVENTS.release();
        WRITER.release();
        THREAD.release();
    }
}

extern "C" fn after_fork_in_child() {
    RECORDING.store(false, SeqCst);
    // SAFETY: `before_fork` took the three locks, and no other thread exists. The parent keeps its own descriptor of the
    // file.
    unsafe {
        EVENTS.held().records = Vec::new();
        *WRITER.held() = None;
    }
    after_fork_in_parent();
}
