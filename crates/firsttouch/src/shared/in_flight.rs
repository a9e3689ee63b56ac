//! Handles in flight: shared memory whose owner was dropped is kept until its handles have been opened.
//!
//! Each handle has a *ticket*, a number. Who opens the handle writes the number into a small memory file of the sender's,
//! the ticket table, at the place of the ticket. Until then, for at most a minute, a memory file that was dropped stays
//! open. That costs descriptors and memory; both are bounded, and the oldest is closed first. The background purger looks
//! which tickets came back.

use super::find;
use crate::heap::purger::{self, Purgeable};
use crate::os::{self, Errno};
use crate::sync::lock::Lock;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a handle remains valid after its memory was dropped.
pub(super) const GOOD_FOR: Duration = Duration::from_secs(60);
/// The fraction of the process's file descriptors (`RLIMIT_NOFILE`) that dropped memory may occupy.
const PART_OF_FILES: usize = 4;
/// An absolute bound, because descriptors may be unlimited and each tick of the purger visits all files in flight.
const MOST_FILES: usize = 1024;
/// The fraction of the available memory that may be in flight; so many bytes always may.
const PART_OF_MEMORY: usize = 4;
const FREE_BYTES: usize = 64 << 20;

/// A handle that may still be opened.
struct Issued {
    number: u64,
    at: Instant,
    /// The descriptor of its memory file.
    file: i32,
}

/// Memory that was dropped with handles in flight.
struct Dropped {
    file: File,
    bytes: usize,
    until: Instant,
}

/// Both lists begin with the oldest.
struct State {
    table: Option<TicketTable>,
    issued: VecDeque<Issued>,
    dropped: VecDeque<Dropped>,
}

impl State {
    /// Forgets the tickets that came back.
    fn forget(&mut self) {
        if let Some(table) = &self.table {
            self.issued.retain(|ticket| !table.is_back(ticket.number));
        }
    }

    /// Closes files that wait for no ticket any more, have waited too long, or exceed a bound. Neither allocates nor frees
    /// memory.
    fn close(&mut self) {
        if self.dropped.is_empty() {
            return;
        }
        self.forget();
        self.dropped.retain(|dropped| is_in_flight(&self.issued, &dropped.file));
        let now = Instant::now();
        while self.dropped.front().is_some_and(|dropped| now >= dropped.until) {
            self.close_oldest();
        }
        let most_files = os::file_limit().map_or(MOST_FILES, |limit| (limit / PART_OF_FILES).clamp(1, MOST_FILES));
        while self.dropped.len() > most_files {
            self.close_oldest();
        }
        let mut bytes: usize = self.dropped.iter().map(|dropped| dropped.bytes).sum();
        if bytes > FREE_BYTES {
            let most = FREE_BYTES.max(os::headroom() / PART_OF_MEMORY);
            while bytes > most && self.dropped.len() > 1 {
                bytes -= self.close_oldest(); // the newest may be of any size
            }
        }
    }

    /// Closes the file that was dropped first; its bytes.
    fn close_oldest(&mut self) -> usize {
        let Some(Dropped { file, bytes, .. }) = self.dropped.pop_front() else { return 0 };
        self.issued.retain(|ticket| ticket.file != os::file_number(&file));
        bytes
    }
}

/// Whether a handle of a memory file may still be opened.
fn is_in_flight(issued: &VecDeque<Issued>, file: &File) -> bool {
    issued.iter().any(|ticket| ticket.file == os::file_number(file))
}

static STATE: Lock<State> = Lock::new(State { table: None, issued: VecDeque::new(), dropped: VecDeque::new() });

/// Calls `body` with the state of this process. What its parent has in flight is the parent's to keep.
fn with_state<T>(body: impl FnOnce(&mut State) -> T) -> T {
    let mut state = STATE.lock();
    if state.table.as_ref().is_some_and(|table| !table.is_ours()) {
        state.issued.clear();
        state.dropped.clear();
    }
    body(&mut state)
}

/// Issues a ticket for a handle of a memory file.
pub(super) fn issue(file: &File) -> Result<Ticket, Errno> {
    static ENTERED: AtomicBool = AtomicBool::new(false);
    purger::enter_once(&Keeper, &ENTERED);
    with_state(|State { table, issued, .. }| {
        let table = match table {
            Some(table) if table.is_ours() => table,
            table => table.insert(TicketTable::new()?),
        };
        // An array that is pickled repeatedly but never opened (for hashing, say) must stay cheap to pickle.
        while issued.len() >= PLACES || issued.front().is_some_and(|ticket| table.is_back(ticket.number)) {
            issued.pop_front();
        }
        issued.try_reserve(1).map_err(|_| Errno::NO_MEMORY)?;
        table.last += 1;
        let number = table.last;
        issued.push_back(Issued { number, at: Instant::now(), file: os::file_number(file) });
        Ok(Ticket { table: table.name.clone(), file: os::file_number(&table.file), number })
    })
}

/// Keeps a file of `bytes` bytes that its owner dropped, as long as handles of it are in flight.
pub(super) fn keep(file: File, bytes: usize) {
    let waits = with_state(|state| {
        if is_in_flight(&state.issued, &file) && state.dropped.try_reserve(1).is_ok() {
            state.dropped.push_back(Dropped { file, bytes, until: Instant::now() + GOOD_FOR });
        }
        state.close();
        !state.dropped.is_empty()
    });
    if waits {
        purger::ensure();
    }
}

/// Closes the oldest file in flight to free a file descriptor. Returns whether there was one.
pub(super) fn release_oldest() -> bool {
    with_state(|state| {
        state.close();
        let was_one = !state.dropped.is_empty();
        state.close_oldest();
        was_one
    })
}

/// Waits until no handle of the last minute is in flight, for at most `most`. Returns whether that was reached.
pub fn wait_until_opened(most: Duration) -> bool {
    let end = Instant::now() + most;
    loop {
        let is_waiting = with_state(|state| {
            state.forget();
            state.issued.iter().any(|ticket| ticket.at.elapsed() < GOOD_FOR)
        });
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
        with_state(|state| state.dropped.is_empty())
    }

    fn hold(&self) {
        STATE.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` acquired it.
        unsafe { STATE.release() };
    }
}

/// The number of places in a table, and of the tickets that are remembered. A number that comes back to a place hides the
/// one that came back there before.
const PLACES: usize = 1 << 12;
const TABLE: usize = PLACES * size_of::<AtomicU64>();
/// The prefix of the table's name; a random name follows.
const NAME: &str = "firsttouch-tickets:";

/// A mapped ticket table.
struct Mapped(usize);

impl Mapped {
    fn new(file: &File) -> Result<Self, Errno> {
        os::map_file(file, TABLE, true).map(Self)
    }

    fn place(&self, number: u64) -> &AtomicU64 {
        let places = std::ptr::with_exposed_provenance_mut::<u64>(self.0);
        // SAFETY: it lies in the mapping, which all access by atomic operations.
        unsafe { AtomicU64::from_ptr(places.add(number as usize % PLACES)) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: no place is referred to any more.
        let _ = unsafe { os::unmap(self.0, TABLE) };
    }
}

/// Tells the sender of a handle that it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The random name of the sender's ticket table.
    pub table: String,
    /// The table's file descriptor in the sender.
    pub file: i32,
    /// The ticket's own number, from 1.
    pub number: u64,
}

impl Ticket {
    /// Notifies the issuing process that its handle was opened. If that fails, the sender waits until the ticket
    /// expires.
    pub fn give_back(&self, process: u32) {
        if let Ok(file) = find(process, self.file, &format!("{NAME}{}", self.table), true)
            && let Ok(table) = Mapped::new(&file)
        {
            table.place(self.number).store(self.number, Relaxed);
        }
    }
}

/// The ticket table of this process.
struct TicketTable {
    /// The process that created it. A forked child has a copy, which it must not use.
    process: u32,
    name: String,
    file: File,
    mapped: Mapped,
    /// The last number issued.
    last: u64,
}

impl TicketTable {
    fn new() -> Result<Self, Errno> {
        let name = super::random_name();
        let file = os::memory_file(&format!("{NAME}{name}"), TABLE)?;
        let mapped = Mapped::new(&file)?;
        Ok(Self { process: std::process::id(), name, file, mapped, last: 0 })
    }

    fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// Whether a ticket came back.
    fn is_back(&self, number: u64) -> bool {
        self.mapped.place(number).load(Relaxed) == number
    }
}
