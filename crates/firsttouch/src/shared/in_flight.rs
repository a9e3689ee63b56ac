//! Handles in flight: shared memory whose owner was dropped is kept until its handles have been opened.
//!
//! Only the memory file is kept, which costs a file descriptor and memory. Both are bounded, and nothing is kept for
//! more than a minute; the oldest is closed first. The background purger checks which tickets were settled.
//!
//! A ticket has a number. The process that opens a handle writes the number into a small memory file of the sender's, the
//! ticket table, in the slot of the ticket.

use super::find;
use crate::heap::purger::{self, DeferredTrim, Purgeable};
use crate::os::{self, Errno};
use crate::sync::lock::Lock;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// How long a handle remains valid after its memory was dropped.
pub(super) const GOOD_FOR: Duration = Duration::from_secs(60);
/// The fraction of the process's file descriptors (`RLIMIT_NOFILE`) that dropped memory may occupy.
const PART_OF_FILES: usize = 4;
/// An absolute bound, because descriptors may be unlimited and each check visits all files in flight.
const MOST_FILES: usize = 4096;
/// Bytes that may always be in flight. The available memory is only queried beyond this.
const FREE_BYTES: usize = 64 << 20;
/// Bytes in flight are bounded by this fraction of the memory of the machine or container, ...
const PART_OF_MEMORY: usize = 16;
/// ... and by this fraction of what is free.
const PART_OF_HEADROOM: usize = 4;
/// The most unsettled tickets of one mapping.
const MOST_TICKETS: usize = 4096;

/// Memory that was dropped with handles in flight.
struct Dropped {
    /// `None` once it is closed: the background purger closes files but frees no memory.
    file: Option<File>,
    bytes: usize,
    tickets: Vec<u64>,
    until: Instant,
}

struct State {
    table: Option<TicketTable>,
    /// Tickets that may be unsettled and when they were issued, oldest first.
    issued: VecDeque<(u64, Instant)>,
    /// Oldest first.
    dropped: VecDeque<Dropped>,
}

impl State {
    const EMPTY: Self = Self { table: None, issued: VecDeque::new(), dropped: VecDeque::new() };

    /// Whether this is a forked child. What the parent has in flight is the parent's to keep, and so is its ticket
    /// table.
    fn is_parents(&self) -> bool {
        self.table.as_ref().is_some_and(|table| table.process != std::process::id())
    }

    /// Closes files that are settled or expired, or exceed a bound. Neither allocates nor frees memory.
    fn close(&mut self) {
        if self.is_parents() {
            self.dropped.iter_mut().for_each(|dropped| dropped.file = None);
            return;
        }
        let Some(table) = &self.table else { return };
        let now = Instant::now();
        let (mut files, mut bytes) = (0, 0);
        for dropped in self.dropped.iter_mut().filter(|dropped| dropped.file.is_some()) {
            if now >= dropped.until || dropped.tickets.iter().all(|&number| table.is_settled(number)) {
                dropped.file = None;
            } else {
                files += 1;
                bytes += dropped.bytes;
            }
        }
        let (most_files, most_bytes) = (most_files(), most_bytes(bytes));
        for dropped in self.dropped.iter_mut().filter(|dropped| dropped.file.is_some()) {
            // The newest may be of any size.
            if files <= most_files && (bytes <= most_bytes || files <= 1) {
                break;
            }
            files -= 1;
            bytes -= dropped.bytes;
            dropped.file = None;
        }
    }

    /// Closes files as [`State::close`] does, and drops their entries.
    fn clean(&mut self) {
        self.close();
        if self.is_parents() {
            *self = Self::EMPTY;
        }
        self.dropped.retain(|dropped| dropped.file.is_some());
    }

    /// Whether a handle is outstanding that may still be opened.
    fn waits(&mut self) -> bool {
        let Some(table) = &self.table else { return false };
        let now = Instant::now();
        self.issued.retain(|&(number, at)| !table.is_settled(number) && now < at + GOOD_FOR);
        !self.issued.is_empty()
    }
}

fn most_files() -> usize {
    os::file_limit().map_or(MOST_FILES, |limit| (limit / PART_OF_FILES).clamp(1, MOST_FILES))
}

/// The limit on the bytes in flight, if `bytes` are now.
fn most_bytes(bytes: usize) -> usize {
    if bytes <= FREE_BYTES {
        return FREE_BYTES;
    }
    FREE_BYTES.max((os::memory_total() / PART_OF_MEMORY).min(os::headroom() / PART_OF_HEADROOM))
}

static STATE: Lock<State> = Lock::new(State::EMPTY);

/// The tickets of one mapping that may be unsettled, and the process that issued them.
pub(super) struct Tickets(Lock<(u32, Vec<u64>)>);

impl Default for Tickets {
    fn default() -> Self {
        Self(Lock::new((0, Vec::new())))
    }
}

impl Tickets {
    /// Issues a new ticket.
    pub(super) fn issue(&self) -> Result<Ticket, Errno> {
        set_up();
        let mut state = STATE.lock();
        state.clean();
        if state.table.is_none() {
            state.table = Some(TicketTable::new()?);
        }
        let State { table: Some(table), issued, .. } = &mut *state else { return Err(Errno::UNSUPPORTED) };
        let mut own = self.0.lock();
        if own.0 != table.process {
            *own = (table.process, Vec::new()); // the old ones are the parent's
        }
        // An array that is pickled repeatedly but never opened (for hashing, say) must stay cheap to pickle.
        if own.1.len() >= MOST_TICKETS {
            own.1.retain(|&number| !table.is_settled(number));
            let surplus = own.1.len().saturating_sub(MOST_TICKETS / 2);
            own.1.drain(..surplus);
        }
        let now = Instant::now();
        let over = |&(number, at): &(u64, Instant)| table.is_settled(number) || now >= at + GOOD_FOR;
        while issued.len() >= PLACES as usize || issued.front().is_some_and(over) {
            issued.pop_front();
        }
        let room = own.1.try_reserve(1).and_then(|()| issued.try_reserve(1));
        room.map_err(|_| Errno::NO_MEMORY)?;
        let ticket = table.issue();
        own.1.push(ticket.number);
        issued.push_back((ticket.number, now));
        Ok(ticket)
    }

    /// Keeps a file of `bytes` bytes while a handle of it is in flight.
    pub(super) fn keep(&self, file: File, bytes: usize) {
        let (process, tickets) = std::mem::take(&mut *self.0.lock());
        if tickets.is_empty() || process != std::process::id() {
            return; // which closes the file
        }
        let mut state = STATE.lock();
        if state.dropped.try_reserve(1).is_err() {
            return;
        }
        let until = Instant::now() + GOOD_FOR;
        state.dropped.push_back(Dropped { file: Some(file), bytes, tickets, until });
        state.clean();
        let waits = !state.dropped.is_empty();
        drop(state);
        if waits {
            purger::ensure();
        }
    }
}

/// Closes the oldest file in flight to free a file descriptor. Returns whether there was one.
pub(super) fn release_oldest() -> bool {
    let mut state = STATE.lock();
    state.clean();
    state.dropped.pop_front().is_some()
}

/// Waits until no handle is in flight, for at most `most`. Returns whether that was reached.
pub fn wait_until_opened(most: Duration) -> bool {
    let end = Instant::now() + most;
    loop {
        {
            let mut state = STATE.lock();
            state.clean();
            if !state.waits() {
                return true;
            }
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct Keeper;

impl Purgeable for Keeper {
    fn tick(&self) -> Option<Arc<dyn DeferredTrim>> {
        STATE.lock().close();
        None
    }

    fn decays(&self) -> bool {
        false
    }

    fn is_idle(&self) -> bool {
        STATE.lock().dropped.iter().all(|dropped| dropped.file.is_none())
    }

    fn hold(&self) {
        STATE.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` acquired it.
        unsafe { STATE.release() };
    }
}

fn set_up() {
    static ENTERED: AtomicBool = AtomicBool::new(false);
    purger::enter_once(&Keeper, &ENTERED);
}

/// The number of slots. Reusing a slot forgets its previous ticket.
pub(super) const PLACES: u64 = 1 << 16;
const BYTES: usize = PLACES as usize * size_of::<u64>();
/// The prefix of the file's name; a random name follows.
const NAME: &str = "firsttouch-tickets:";
fn position(number: u64) -> usize {
    (number % PLACES) as usize * size_of::<u64>()
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
        if let Ok(file) = find(process, self.file, &format!("{NAME}{}", self.table), true) {
            let _ = os::write_file_at(&file, &self.number.to_ne_bytes(), position(self.number));
        }
    }
}

/// The ticket table of this process, mapped.
pub(super) struct TicketTable {
    /// The process that created it. A forked child has a copy, which it must not use.
    pub process: u32,
    name: String,
    file: File,
    address: usize,
    last: u64,
}

impl TicketTable {
    pub fn new() -> Result<Self, Errno> {
        let name: String = os::random().iter().map(|byte| format!("{byte:02x}")).collect();
        let file = os::memory_file(&format!("{NAME}{name}"), BYTES, None)?;
        let address = os::map_file(&file, BYTES, 0, true)?;
        Ok(Self { process: std::process::id(), name, file, address, last: 0 })
    }

    /// Issues a new ticket.
    pub fn issue(&mut self) -> Ticket {
        self.last += 1;
        self.place(self.last).store(0, Relaxed);
        Ticket { table: self.name.clone(), file: os::file_number(&self.file), number: self.last }
    }

    fn place(&self, number: u64) -> &AtomicU64 {
        let address = self.address + position(number);
        // SAFETY: the slot lies in the mapping, which lives as long as the table; other processes write to it
        // atomically.
        unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }
    }

    /// Whether the handle was opened.
    pub fn is_settled(&self, number: u64) -> bool {
        self.place(number).load(Relaxed) == number
    }
}

impl Drop for TicketTable {
    fn drop(&mut self) {
        // SAFETY: it was mapped for this table alone.
        let _ = unsafe { os::unmap(self.address, BYTES) };
    }
}
