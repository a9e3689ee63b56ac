//! Memory that several processes map: a memory file, which the kernel frees when no process maps or holds it any more,
//! even if a process was killed.
//!
//! A [`Handle`] names the process that holds the file and its descriptor there, and the file's own name, which cannot be
//! guessed. Linux finds it by the first two and compares the name, so a descriptor that has been reused is noticed; Windows
//! finds it by the name.
//!
//! The file begins with a count: the handles that were made, less the openings. Memory whose owner was dropped is *in flight* until
//! the count is zero: its file stays open, for at most a minute. That costs descriptors and memory; both are bounded, and the
//! oldest is closed first. The background purger reads the counts.

#![allow(unsafe_code)] // Safety: a mapping exists from its creation here until its owner is dropped.

use crate::error::AllocError;
use crate::failure;
use crate::heap::purger::{self, Registered};
use crate::layout::round_up;
use crate::os::{self, Errno};
use crate::reason::Reason;
use crate::size::Bytes;
use crate::sync::lock::{AtFork, Lock, RawLock};
use std::cell::LazyCell;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The prefix of the names of memory files.
const NAME: &str = "firsttouch:";

/// Where another process of this host finds shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The memory's unique name.
    pub token: String,
    /// The process that holds it.
    pub process: u32,
    /// Its file descriptor in that process.
    pub file: i32,
    /// The number of bytes to map.
    pub size: usize,
}

/// Returns a message about a handle that could not be opened.
pub fn message(error: Errno, handle: &Handle) -> String {
    let (process, size) = (handle.process, Bytes(handle.size));
    match error {
        Errno::NOTHING_THERE => format!(
            "process {process} has ended, no longer holds this shared array, or is on another host or in another \
             container: a handle is good as long as its sender lives and holds the array, and then for {} seconds, until the \
             array was opened as often as it was sent (by one handle twice, and another finds nothing). Unopened arrays may \
             take a quarter of its file descriptors (RLIMIT_NOFILE) and of the memory that is free; the oldest is released \
             first. Keep the array until all others have opened it, and send numpy.array(a), a copy, to other hosts",
            GOOD_FOR.as_secs()
        ),
        Errno::INVALID => format!("this is not a valid handle of a shared array: its {size} do not fit the memory"),
        Errno::NO_ACCESS | Errno::NOT_PERMITTED => format!(
            "process {process}, which sent this shared array, may not be looked into (/proc/{process}/fd): it belongs to \
             another user, or protects itself"
        ),
        Errno::NO_MEMORY => format!("cannot map {size} of shared memory: RLIMIT_AS (ulimit -v) leaves too little"),
        Errno::NO_DESCRIPTOR => format!(
            "a shared array of process {process} cannot be opened: each takes a file descriptor, and RLIMIT_NOFILE \
             (ulimit -n) leaves none"
        ),
        error => format!("a shared array of process {process} cannot be opened: {}", Reason::of(error)),
    }
}

/// Mapped shared memory.
pub struct Shared {
    file: Option<File>,
    token: String,
    address: usize,
    size: usize,
    write: bool,
}

impl Shared {
    /// Creates shared memory of at least `size` bytes, all zero.
    ///
    /// # Errors
    /// [`Errno::NO_MEMORY`], which is remembered as the last failure, or why the system does not create the memory file (no
    /// descriptor is left, the size exceeds a limit, ...) or gives no random bytes for its token.
    pub fn new(size: usize) -> Result<Self, Errno> {
        enter();
        let token: String = os::random()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let make = || {
            let whole = round_up(size.max(1).saturating_add(START), os::page_size()).ok_or(Errno::NO_MEMORY)?;
            let file = os::memory_file(&format!("{NAME}{token}"), whole)?;
            Ok((os::map_file(&file, START, whole - START, true)?, whole - START, file))
        };
        let (address, size, file) = make().inspect_err(|&error| {
            if error == Errno::NO_MEMORY {
                failure::remember(AllocError::new(size, os::why_refused(size, error)));
            }
        })?;
        Ok(Self { file: Some(file), token, address, size, write: true })
    }

    /// Maps memory that another process shares, writable if `write`.
    ///
    /// # Errors
    /// See [`message`].
    pub fn open(handle: &Handle, write: bool) -> Result<Self, Errno> {
        enter();
        let file = os::find_memory_file(handle.process, handle.file, &format!("{NAME}{}", handle.token))?;
        let address = os::map_file(&file, START, handle.size, write)?;
        let opened = Self { file: Some(file), token: handle.token.clone(), address, size: handle.size, write };
        opened.arrived()?;
        Ok(opened)
    }

    /// Notes that a handle of this memory was opened here.
    ///
    /// # Errors
    /// If the count cannot be mapped. The sender then waits until the handle expires.
    pub fn arrived(&self) -> Result<(), Errno> {
        if let Some(file) = &self.file {
            // Which handle was opened is not known: the second opening of one counts for another (docs/notes/029).
            let _ = Unopened::of(file)?.count().fetch_update(Relaxed, Relaxed, |count| count.checked_sub(1));
        }
        Ok(())
    }

    /// Returns a handle. Until this memory is dropped it can be opened any number of times. Then the memory stays until it was
    /// opened as often as handles were made, for a limited time.
    ///
    /// # Errors
    /// If there is no memory to count it.
    pub fn handle(&self) -> Result<Handle, Errno> {
        let file = self.file.as_ref().ok_or(Errno::UNSUPPORTED)?;
        count_handle(file, self.size)?;
        let (token, process) = (self.token.clone(), std::process::id());
        Ok(Handle { token, process, file: os::file_number(file), size: self.size })
    }

    /// The address of the mapping.
    pub fn address(&self) -> usize {
        self.address
    }

    /// The size of the mapping in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether this mapping is writable.
    pub fn is_writable(&self) -> bool {
        self.write
    }

    /// The memory's unique name.
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: all users of the mapping hold its owner, which is being dropped.
        let _ = unsafe { os::unmap(self.address, self.size) };
        if let Some(file) = self.file.take() {
            keep_in_flight(file); // until its receiver has opened it
        }
    }
}

// ---- Handles in flight ----------------------------------------------------------------------------------------------

/// Where the memory begins in its file, behind the count: Windows maps parts of a file from multiples of this on only.
const START: usize = 64 << 10;

/// The count of handles made, less openings, mapped.
struct Unopened(usize);

impl Unopened {
    fn of(file: &File) -> Result<Self, Errno> {
        os::map_file(file, 0, size_of::<AtomicU32>(), true).map(Self)
    }

    fn count(&self) -> &AtomicU32 {
        // SAFETY: the mapping begins with it, and all processes access it by atomic operations.
        unsafe { AtomicU32::from_ptr(std::ptr::with_exposed_provenance_mut(self.0)) }
    }
}

impl Drop for Unopened {
    fn drop(&mut self) {
        // SAFETY: the count is not referred to any more.
        let _ = unsafe { os::unmap(self.0, size_of::<AtomicU32>()) };
    }
}

// ---- Memory in flight ------------------------------------------------------------------------------------------------

/// How long a handle remains valid after its memory was dropped.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// The fraction of the process's file descriptors (`RLIMIT_NOFILE`) that dropped memory may occupy.
const PART_OF_FILES: usize = 4;
/// An absolute bound, because descriptors may be unlimited and each tick of the purger visits all files in flight.
const MOST_FILES: usize = 1024;
/// The fraction of the available memory that may be in flight, and the bytes that always may.
const PART_OF_MEMORY: usize = 4;
const FREE_BYTES: usize = 64 << 20;

/// Memory for which this process made handles.
struct Sent {
    /// The number of its file.
    number: i32,
    unopened: Unopened,
    bytes: usize,
    /// When the last handle was made or, later, the owner was dropped.
    at: Instant,
    /// The file, since its owner was dropped.
    file: Option<File>,
}

impl Sent {
    /// Whether another opening is expected.
    fn is_in_flight(&self) -> bool {
        self.at.elapsed() < GOOD_FOR && self.unopened.count().load(Relaxed) > 0
    }
}

/// The memory that was dropped last stands first.
struct State {
    process: u32,
    sent: Vec<Sent>,
}

static STATE: Lock<State> = Lock::new(State { process: 0, sent: Vec::new() });

/// Lets forks hold the state's lock from now on. Called before shared memory is made or opened: dropping it must not allocate.
fn enter() {
    static ENTERED: AtomicBool = AtomicBool::new(false);
    purger::enter_once(&InFlight, &ENTERED);
}

/// Calls `body` with the state of this process. Memory that its parent has in flight is the parent's to keep.
fn with_state<T>(body: impl FnOnce(&mut State) -> T) -> T {
    let mut state = STATE.lock();
    if state.process != std::process::id() {
        state.process = std::process::id();
        state.sent.clear();
    }
    body(&mut state)
}

impl State {
    fn find(&self, file: &File) -> Option<usize> {
        self.sent.iter().position(|sent| sent.number == os::file_number(file))
    }

    fn has_dropped(&self) -> bool {
        self.sent.iter().any(|sent| sent.file.is_some())
    }

    /// Closes files without handles in flight, and those beyond a bound. Neither allocates nor frees memory.
    fn close(&mut self) {
        let most_files = os::file_limit().map_or(MOST_FILES, |limit| (limit / PART_OF_FILES).clamp(1, MOST_FILES));
        let most_bytes = LazyCell::new(|| os::headroom() / PART_OF_MEMORY);
        let (mut files, mut bytes) = (0, 0);
        self.sent.retain(|sent| {
            if sent.file.is_none() || !sent.is_in_flight() {
                return sent.file.is_none();
            }
            (files, bytes) = (files + 1, bytes + sent.bytes);
            let is_newest = files == 1; // which may be of any size
            files <= most_files && (is_newest || bytes <= FREE_BYTES || bytes <= *most_bytes)
        });
    }
}

/// Counts a handle of a memory file.
fn count_handle(file: &File, bytes: usize) -> Result<(), Errno> {
    with_state(|state| {
        let at = match state.find(file) {
            Some(at) => at,
            None => {
                state.sent.try_reserve(1).map_err(|_| Errno::NO_MEMORY)?;
                let (number, unopened) = (os::file_number(file), Unopened::of(file)?);
                state.sent.push(Sent { number, unopened, bytes, at: Instant::now(), file: None });
                state.sent.len() - 1
            }
        };
        state.sent[at].at = Instant::now();
        state.sent[at].unopened.count().fetch_add(1, Relaxed);
        Ok(())
    })
}

/// Keeps a file that its owner dropped, as long as handles of it are in flight.
fn keep_in_flight(file: File) {
    let waits = with_state(|state| {
        if let Some(at) = state.find(&file) {
            let sent = state.sent.remove(at);
            state.sent.insert(0, Sent { at: Instant::now(), file: Some(file), ..sent });
        }
        state.close();
        state.has_dropped()
    });
    if waits {
        purger::ensure();
    }
}

/// Waits until no handle of the last minute is in flight, for at most `most`. Returns whether that was reached.
pub fn wait_until_opened(most: Duration) -> bool {
    let end = Instant::now() + most;
    loop {
        let is_waiting = with_state(|state| state.sent.iter().any(Sent::is_in_flight));
        if !is_waiting || Instant::now() >= end {
            return !is_waiting;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct InFlight;

impl AtFork for InFlight {
    fn locks(&self, each: &mut dyn FnMut(&RawLock)) {
        each(STATE.raw());
    }
}

impl Registered for InFlight {
    fn tick(&self) {
        with_state(State::close);
    }

    fn needs_no_tick(&self) -> bool {
        with_state(|state| !state.has_dropped())
    }
}
