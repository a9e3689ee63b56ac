//! Handles in flight: shared memory whose owner was dropped is kept until its handles have been opened.
//!
//! Only the memory file is kept, which costs a file descriptor and memory. Both are bounded, and nothing is kept for
//! more than a minute; the oldest is closed first. The background purger checks which tickets were settled.

use super::tickets::{Fate, PLACES, Ticket, TicketTable};
use crate::heap::purger::{self, DeferredTrim, Purgeable};
use crate::os::{self, Errno};
use crate::sync::lock::Lock;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long a handle remains valid after its memory was dropped.
const GOOD_FOR: Duration = Duration::from_secs(60);
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

impl Dropped {
    /// Closes the file and records why, for processes that open a handle of it later.
    fn release(&mut self, table: &TicketTable, fate: Fate) {
        self.tickets.iter().for_each(|&number| table.give_up(number, fate));
        self.file = None;
    }
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
            if dropped.tickets.iter().all(|&number| table.is_settled(number)) {
                dropped.file = None;
            } else if now >= dropped.until {
                dropped.release(table, Fate::Expired);
            } else {
                files += 1;
                bytes += dropped.bytes;
            }
        }
        let (most_files, most_bytes) = (most_files(), most_bytes(bytes));
        for dropped in self.dropped.iter_mut().filter(|dropped| dropped.file.is_some()) {
            let fate = match (files > most_files, bytes > most_bytes) {
                (true, _) => Fate::FileLimit,
                (_, true) if files > 1 => Fate::MemoryLimit, // the newest may be of any size
                _ => break,
            };
            files -= 1;
            bytes -= dropped.bytes;
            dropped.release(table, fate);
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
        if own.1.len() >= 64 && own.1.len().is_power_of_two() {
            own.1.retain(|&number| !table.is_settled(number));
        }
        if own.1.len() >= MOST_TICKETS {
            own.1.drain(..MOST_TICKETS / 2);
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
    let State { table: Some(table), dropped, .. } = &mut *state else { return false };
    let oldest = dropped.pop_front();
    oldest.map(|mut oldest| oldest.release(table, Fate::FileLimit)).is_some()
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
