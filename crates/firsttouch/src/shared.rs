//! Memory that several processes map: a memory file, which the kernel frees when no process maps or holds it any more,
//! even if a process was killed.
//!
//! A [`Handle`] names the process that holds the file and its descriptor there, and the file's own name, which cannot be
//! guessed. Linux finds it by the first two and compares the name, so a descriptor that has been reused is noticed; Windows
//! finds it by the name.
//!
//! Each handle has a *ticket*, a number. Behind the memory the file has tickets, in which who opens a handle settles its
//! ticket. Memory whose owner was dropped is *in flight* until all tickets are settled: its file stays open, for at most a
//! minute. That costs descriptors and memory; both are bounded, and the oldest is closed first. The background purger looks
//! which tickets are settled.

#![allow(unsafe_code)] // Safety: a mapping exists from its creation here until its owner is dropped.

use crate::error::AllocError;
use crate::failure;
use crate::heap::purger::{self, Purgeable};
use crate::layout::round_up;
use crate::os::{self, Errno};
use crate::reason::Reason;
use crate::size::Bytes;
use crate::sync::lock::{Lock, RawLock};
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
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
    /// The ticket, which is settled when the handle is opened.
    pub ticket: u32,
}

impl Handle {
    /// Opens the memory file.
    fn find(&self) -> Result<File, Errno> {
        os::find_memory_file(self.process, self.file, &format!("{NAME}{}", self.token))
    }
}

/// Returns a message about a handle that could not be opened.
pub fn message(error: Errno, handle: &Handle) -> String {
    let (process, size) = (handle.process, Bytes(handle.size));
    match error {
        Errno::NOTHING_THERE => format!(
            "process {process} has ended, no longer holds this shared array, or is on another host or in another \
             container: a handle is good as long as its sender lives and holds the array, and can be opened once within {} \
             seconds after it was released. Unopened arrays may take a quarter of its file descriptors (RLIMIT_NOFILE) and \
             of the memory that is free; the oldest is released first. Keep the array until all others have opened it, and \
             send numpy.array(a), a copy, to other hosts",
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
    /// descriptor is left, the size exceeds a limit, ...).
    pub fn new(size: usize) -> Result<Self, Errno> {
        enter();
        let token: String = os::random().iter().map(|byte| format!("{byte:02x}")).collect();
        let make = || {
            let size = round_up(size.max(1), os::page_size()).ok_or(Errno::NO_MEMORY)?;
            let file = os::memory_file(
                &format!("{NAME}{token}"),
                round_up(size, BOUNDARY).ok_or(Errno::NO_MEMORY)? + TICKETS,
            )?;
            Ok((os::map_file(&file, 0, size, true)?, size, file))
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
        let file = handle.find()?;
        // The file ends with its tickets, so a size that leads to them is right. Another would settle a ticket in the memory, or
        // map tickets as memory.
        let behind = round_up(handle.size, BOUNDARY).ok_or(Errno::INVALID)? + BOUNDARY;
        if let Ok(address) = os::map_file(&file, behind, 1, false) {
            // SAFETY: it was just mapped and is not in use.
            let _ = unsafe { os::unmap(address, 1) };
            return Err(Errno::INVALID);
        }
        let address = os::map_file(&file, 0, handle.size, write)?;
        let opened = Self { file: Some(file), token: handle.token.clone(), address, size: handle.size, write };
        opened.settle(handle.ticket)?;
        Ok(opened)
    }

    /// Settles the ticket of a handle of this memory, which has arrived.
    ///
    /// # Errors
    /// If the tickets cannot be mapped. The sender then waits until the ticket expires.
    pub fn settle(&self, ticket: u32) -> Result<(), Errno> {
        if let Some(file) = &self.file {
            Tickets::of(file, self.size)?.place(ticket).store(1, Relaxed);
        }
        Ok(())
    }

    /// Returns a handle. Until this memory is dropped it can be opened any number of times; after that once, for a
    /// limited time.
    ///
    /// # Errors
    /// If there is no memory for its ticket.
    pub fn handle(&self) -> Result<Handle, Errno> {
        let file = self.file.as_ref().ok_or(Errno::UNSUPPORTED)?;
        let ticket = issue(file, self.size)?;
        let (token, process) = (self.token.clone(), std::process::id());
        Ok(Handle { token, process, file: os::file_number(file), size: self.size, ticket })
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
            keep(file); // until its receiver has opened it
        }
    }
}

// ---- Tickets ---------------------------------------------------------------------------------------------------------

/// The tickets of a memory file, mapped: how many were issued by any process, and a byte for each of the last ones, which is
/// not zero once the ticket is settled.
struct Tickets(usize);

/// They lie behind the memory, from the next multiple of this on: Windows maps parts of a file from there only.
const BOUNDARY: usize = 64 << 10;
const TICKETS: usize = 4096;
const PLACES: u32 = 4092;

impl Tickets {
    fn of(file: &File, size: usize) -> Result<Self, Errno> {
        os::map_file(file, round_up(size, BOUNDARY).ok_or(Errno::INVALID)?, TICKETS, true).map(Self)
    }

    fn issued(&self) -> &AtomicU32 {
        // SAFETY: it lies in the mapping, which all access by atomic operations.
        unsafe { AtomicU32::from_ptr(std::ptr::with_exposed_provenance_mut(self.0)) }
    }

    fn place(&self, ticket: u32) -> &AtomicU8 {
        let places = std::ptr::with_exposed_provenance_mut::<u8>(self.0 + size_of::<AtomicU32>());
        // SAFETY: as above.
        unsafe { AtomicU8::from_ptr(places.add((ticket % PLACES) as usize)) }
    }

    fn issue(&self) -> u32 {
        let ticket = self.issued().fetch_add(1, Relaxed);
        self.place(ticket).store(0, Relaxed);
        ticket
    }

    /// Whether any handle may still be opened.
    fn is_any_out(&self) -> bool {
        (0..self.issued().load(Relaxed).min(PLACES)).any(|ticket| self.place(ticket).load(Relaxed) == 0)
    }
}

impl Drop for Tickets {
    fn drop(&mut self) {
        // SAFETY: no place is referred to any more.
        let _ = unsafe { os::unmap(self.0, TICKETS) };
    }
}

// ---- Memory in flight ------------------------------------------------------------------------------------------------

/// How long a handle remains valid after its memory was dropped.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// The fraction of the process's file descriptors (`RLIMIT_NOFILE`) that dropped memory may occupy.
const PART_OF_FILES: usize = 4;
/// An absolute bound, because descriptors may be unlimited and each tick of the purger visits all files in flight.
const MOST_FILES: usize = 1024;
/// The fraction of the available memory that may be in flight; so many bytes always may.
const PART_OF_MEMORY: usize = 4;
const FREE_BYTES: usize = 64 << 20;

/// Memory of which this process made handles.
struct Sent {
    /// The number of its file.
    number: i32,
    tickets: Tickets,
    bytes: usize,
    /// When the last handle was made or, since its owner was dropped, when that was.
    at: Instant,
    /// The file, since its owner was dropped.
    file: Option<File>,
}

/// What was dropped stands in its order.
struct State {
    process: u32,
    sent: Vec<Sent>,
}

static STATE: Lock<State> = Lock::new(State { process: 0, sent: Vec::new() });

/// Lets forks hold the state's lock from now on. Whoever makes or opens shared memory will drop it, which allocates nothing.
fn enter() {
    static ENTERED: AtomicBool = AtomicBool::new(false);
    purger::enter_once(&Keeper, &ENTERED);
}

/// Calls `body` with the state of this process. What its parent has in flight is the parent's to keep.
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

    fn dropped(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(|sent| sent.file.is_some())
    }

    /// Closes files that wait for no ticket any more, have waited too long, or exceed a bound. Neither allocates nor frees
    /// memory.
    fn close(&mut self) {
        self.sent.retain(|sent| sent.file.is_none() || sent.at.elapsed() < GOOD_FOR && sent.tickets.is_any_out());
        let most_files = os::file_limit().map_or(MOST_FILES, |limit| (limit / PART_OF_FILES).clamp(1, MOST_FILES));
        let (mut files, mut bytes) =
            self.dropped().fold((0, 0), |(files, bytes), sent| (files + 1, bytes + sent.bytes));
        let most_bytes = if bytes > FREE_BYTES { FREE_BYTES.max(os::headroom() / PART_OF_MEMORY) } else { FREE_BYTES };
        self.sent.retain(|sent| {
            let is_too_much = files > most_files || bytes > most_bytes && files > 1; // the newest may be of any size
            if sent.file.is_some() && is_too_much {
                (files, bytes) = (files - 1, bytes - sent.bytes);
                return false;
            }
            true
        });
    }
}

/// Issues a ticket for a handle of a memory file.
fn issue(file: &File, bytes: usize) -> Result<u32, Errno> {
    with_state(|state| {
        let at = match state.find(file) {
            Some(at) => at,
            None => {
                state.sent.try_reserve(1).map_err(|_| Errno::NO_MEMORY)?;
                let (number, tickets) = (os::file_number(file), Tickets::of(file, bytes)?);
                state.sent.push(Sent { number, tickets, bytes, at: Instant::now(), file: None });
                state.sent.len() - 1
            }
        };
        state.sent[at].at = Instant::now();
        Ok(state.sent[at].tickets.issue())
    })
}

/// Keeps a file that its owner dropped, as long as handles of it are in flight.
fn keep(file: File) {
    let waits = with_state(|state| {
        if let Some(at) = state.find(&file) {
            let sent = state.sent.remove(at);
            state.sent.push(Sent { at: Instant::now(), file: Some(file), ..sent });
        }
        state.close();
        state.dropped().next().is_some()
    });
    if waits {
        purger::ensure();
    }
}

/// Waits until no handle of the last minute is in flight, for at most `most`. Returns whether that was reached.
pub fn wait_until_opened(most: Duration) -> bool {
    let end = Instant::now() + most;
    loop {
        let is_out = |sent: &Sent| sent.at.elapsed() < GOOD_FOR && sent.tickets.is_any_out();
        let is_waiting = with_state(|state| state.sent.iter().any(is_out));
        if !is_waiting || Instant::now() >= end {
            return !is_waiting;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct Keeper;

impl Purgeable for Keeper {
    fn tick(&self) {
        with_state(State::close);
    }

    fn is_idle(&self) -> bool {
        with_state(|state| state.dropped().next().is_none())
    }

    fn locks(&self, each: &mut dyn FnMut(&RawLock)) {
        each(STATE.raw());
    }
}
