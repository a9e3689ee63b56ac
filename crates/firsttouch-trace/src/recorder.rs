//! The trace recorder of the process. An event takes a short lock and a record in a buffer; a thread of its own takes the
//! full buffer in exchange for an empty one, and writes it to the file.
//!
//! `free` never waits for the disk: when the buffer is nearly full, requests for memory wait instead, and when it is full
//! all the same, events are lost and counted. The writer thread is joined before a fork and restarted by the next
//! request. A forked child does not record unless it starts a trace of its own.
//!
//! Locks are taken in this order: `THREAD`, `WRITER`, `EVENTS`.

use crate::format::{Kind, LARGE_SIZE, MAGIC, MAX_TEXT, Metadata, Record, VERSION, write_facts};
use firsttouch::os;
use firsttouch::sync::First;
use firsttouch::sync::lock::{Guard, Lock};
use std::ffi::c_void;
use std::fs::File;
use std::hint::black_box;
use std::io::{Error, ErrorKind, Write};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// The bytes of either buffer.
const CAPACITY: usize = 4 << 20;
/// The writer is woken whenever another such part of the buffer has filled.
const WAKE_INTERVAL: usize = CAPACITY / 4;
/// How often the writer thread writes: how much a killed program may lose.
const WRITE_INTERVAL: Duration = Duration::from_millis(20);
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

impl Request {
    fn record(self, kind: Kind, address: usize) -> Record {
        let Self { size, zeroed, is_array, site } = self;
        Record { zeroed, is_array, site, ..Record::of(kind, address as u64, size as u64) }
    }
}

/// The events that the writer has not taken yet.
struct Events {
    /// Never grows beyond [`CAPACITY`], which it has while a trace is recorded.
    bytes: Vec<u8>,
    count: u64,
    sites: u32,
    lost: u64,
}

static RECORDING: AtomicBool = AtomicBool::new(false);
static EVENTS: Lock<Events> = Lock::new(Events { bytes: Vec::new(), count: 0, sites: 0, lost: 0 });
static WRITER: Lock<Option<Writer>> = Lock::new(None);
static THREAD: Lock<Option<os::Thread>> = Lock::new(None);
/// Whether the writer thread was started, even if that failed.
static STARTED: AtomicBool = AtomicBool::new(false);
/// Incremented to wake the writer thread, which sleeps on it.
static WAKE_UPS: AtomicU32 = AtomicU32::new(0);
static STOP: AtomicBool = AtomicBool::new(false);
static TASK: AtomicU32 = AtomicU32::new(0);
/// When the first trace of the process was started, and when this one was, in microseconds after that.
static CLOCK: First<Instant> = First::new();
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// Returns whether a trace is being recorded.
#[inline]
pub fn is_recording() -> bool {
    RECORDING.load(Relaxed)
}

/// Returns the microseconds since the first trace of the process was started.
fn clock() -> u64 {
    CLOCK.get_or_init(|| Box::new(Instant::now())).elapsed().as_micros() as u64
}

impl Events {
    /// Adds a record and its text; returns whether there was room.
    fn push(&mut self, record: Record, text: &[u8]) -> bool {
        let before = self.bytes.len();
        if before + Record::BYTES + text.len() > CAPACITY {
            self.lost += 1;
            return false;
        }
        Record { micros: clock().saturating_sub(BEGUN.load(Relaxed)), ..record }.write(&mut self.bytes, text);
        self.count += 1;
        if self.bytes.len() / WAKE_INTERVAL != before / WAKE_INTERVAL {
            wake_writer();
        }
        true
    }

    fn is_nearly_full(&self) -> bool {
        self.bytes.len() > CAPACITY / 4 * 3
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
    while is_recording() && events.is_nearly_full() {
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
    while is_recording() && EVENTS.lock().is_nearly_full() {
        wake_writer();
        if THREAD.lock().is_none() {
            drain();
        }
        os::wait(&NEVER_WOKEN, 0, Some(Duration::from_millis(1)));
        if began.elapsed() > MAX_WAIT {
            RECORDING.store(false, SeqCst); // the trace stays without an end mark
        }
    }
}

/// Records the allocation of a block, if that is large.
#[inline]
pub fn on_alloc(address: usize, request: Request) {
    if request.size as u64 >= LARGE_SIZE
        && let Some(mut events) = lock_with_room()
    {
        events.push(request.record(Kind::Allocate, address), &[]);
    }
}

/// Records that a block is about to be freed, if that is large. `size` need not be exact.
#[inline]
pub fn on_free(address: usize, size: usize) {
    if !is_recording() || (size as u64) < LARGE_SIZE {
        return;
    }
    let mut events = EVENTS.lock();
    if is_recording() {
        events.push(Record::of(Kind::Free, address as u64, 0), &[]);
    }
}

/// Records that a block is about to be resized. [`on_resize_end`] must follow.
pub fn on_resize_begin(address: usize) {
    if let Some(mut events) = lock_with_room() {
        events.push(Record::of(Kind::Resize, address as u64, 0), &[]);
    }
}

/// Records that the resize of the block at `old` has ended: it is now at `address`, or is unchanged if that is `None`.
pub fn on_resize_end(old: usize, address: Option<usize>, request: Request) {
    if let Some(mut events) = lock_with_room() {
        let record = request.record(Kind::Resized, address.unwrap_or(0));
        events.push(Record { old: old as u64, ..record }, &[]);
    }
}

/// Adds a source line to the trace and returns its number, or 0 if it cannot be added.
pub fn add_site(file: &str, line: u32, library: &str) -> u32 {
    let Some(mut events) = lock_with_room() else { return 0 };
    let text = format!("{file}\0{library}");
    let record = Record::of(Kind::Site, line.into(), text.len() as u64);
    if file.is_empty() || text.len() > MAX_TEXT || !events.push(record, text.as_bytes()) {
        return 0;
    }
    events.sites += 1;
    events.sites
}

#[cold]
fn start_thread() {
    let mut thread = THREAD.lock();
    if is_recording() && !STARTED.swap(true, SeqCst) {
        STOP.store(false, SeqCst);
        // SAFETY: the body uses no argument.
        *thread = unsafe { os::spawn(writer_thread, null_mut(), &TASK) }.ok(); // without one, requests and `stop` write
    }
}

fn stop_thread(thread: &mut Option<os::Thread>) {
    STOP.store(true, SeqCst);
    wake_writer();
    drop(thread.take());
    STARTED.store(false, SeqCst);
}

extern "C" fn writer_thread(_: *mut c_void) -> *mut c_void {
    os::name_thread(c"firsttouch-rec", &TASK);
    while !STOP.load(SeqCst) {
        let wake_ups = WAKE_UPS.load(SeqCst);
        drain();
        if !STOP.load(SeqCst) {
            os::wait(&WAKE_UPS, wake_ups, Some(WRITE_INTERVAL));
        }
    }
    null_mut()
}

/// Writes what there is.
fn drain() {
    let mut writer = WRITER.lock();
    if let Some(writer) = writer.as_mut() {
        std::mem::swap(&mut writer.spare, &mut EVENTS.lock().bytes);
        let mut bytes = std::mem::take(&mut writer.spare);
        writer.write(&bytes);
        bytes.clear();
        writer.spare = bytes;
        if writer.failure().is_some() {
            RECORDING.store(false, SeqCst);
        }
    }
}

/// The file of a trace. After an error it discards everything.
///
/// A program may close every descriptor, as daemons do, and the next file that it opens gets the number of this one.
struct Writer {
    /// `None` once the descriptor was found to be another file's.
    file: Option<File>,
    identity: Option<(u64, u64)>,
    written: u64,
    error: Option<Error>,
    /// An empty buffer, for which the full one is exchanged.
    spare: Vec<u8>,
}

impl Writer {
    /// Gives the descriptor up, without closing it, if it is no longer this file's.
    fn check_descriptor(&mut self) {
        if self.file.as_ref().is_some_and(|file| os::file_identity(file).ok() != self.identity) {
            std::mem::forget(self.file.take());
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.check_descriptor();
        self.written += bytes.len() as u64;
        if let (Some(file), None) = (&mut self.file, &self.error) {
            self.error = file.write_all(bytes).err();
        }
    }

    /// Why the trace cannot be continued, if it cannot.
    fn failure(&self) -> Option<Error> {
        match &self.error {
            Some(error) => Some(error.raw_os_error().map_or(error.kind().into(), Error::from_raw_os_error)),
            None if self.file.is_none() => Some(Error::new(ErrorKind::NotFound, "the program closed its descriptor")),
            None => None,
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.check_descriptor();
    }
}

/// Starts a trace in `file`, with `metadata` at its beginning.
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
    let (bytes, spare) = (buffer()?, buffer()?);
    let mut header = [MAGIC, VERSION.to_le_bytes()].concat();
    write_facts(&mut header, metadata);
    let identity = os::file_identity(&file).ok();
    writer.insert(Writer { file: Some(file), identity, written: 0, error: None, spare }).write(&header);
    let mut events = EVENTS.lock();
    BEGUN.store(clock(), Relaxed);
    *events = Events { bytes, count: 0, sites: 0, lost: 0 };
    RECORDING.store(true, SeqCst);
    Ok(())
}

/// Returns an empty buffer, faulted in so that it does not show as growth of the program.
fn buffer() -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(CAPACITY).map_err(|_| Error::from(ErrorKind::OutOfMemory))?;
    bytes.resize(CAPACITY, 1);
    bytes.clear();
    Ok(bytes)
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
    let Events { mut bytes, count, lost, .. } =
        std::mem::replace(&mut *EVENTS.lock(), Events { bytes: Vec::new(), count: 0, sites: 0, lost: 0 });
    if !given_up {
        write_facts(&mut bytes, metadata);
        Record::of(Kind::End, 0, lost).write(&mut bytes, &[]);
    }
    writer.write(&bytes);
    let failure = writer.failure().or_else(|| given_up.then(|| Error::new(ErrorKind::TimedOut, TOO_SLOW)));
    Some(failure.map_or(Ok(Recorded { events: count, bytes: writer.written, lost }), Err))
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
        EVENTS.held().bytes = Vec::new();
        *WRITER.held() = None;
    }
    after_fork_in_parent();
}
