//! Tickets: how the process that opens a handle tells the sender so, and how the sender tells what became of one.
//!
//! Each handle has a number. Whoever opens it writes the number into a small memory file of the sender's, the ticket
//! table, at a place of the ticket's own; a sender that gives up the memory first writes its reason there.

use super::find;
use crate::os::{self, Errno};
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Places for tickets; one that is used again forgets the ticket before.
pub(super) const PLACES: u64 = 1 << 16;
const BYTES: usize = PLACES as usize * size_of::<u64>();
/// What the file is called, before a random name of its own.
const NAME: &str = "firsttouch-tickets:";
/// A place holds a number in its lower bits, and what became of the ticket above.
const FATE_SHIFT: u32 = 56;

/// What became of a ticket whose memory the sender no longer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing is known: the sender dropped the memory before it made this handle, or the table has forgotten.
    Unknown,
    /// The handle was opened, here or by another process.
    Opened,
    /// Nobody opened it in time.
    Expired,
    /// Released early, so that file descriptors are left for the rest of the sender.
    FileLimit,
    /// Released early, so that memory is left for others.
    MemoryLimit,
}

impl Fate {
    fn code(self) -> u64 {
        match self {
            Self::Unknown | Self::Opened => 0, // an opener writes the bare number
            Self::Expired => 1,
            Self::FileLimit => 2,
            Self::MemoryLimit => 3,
        }
    }
}

fn position(number: u64) -> usize {
    (number % PLACES) as usize * size_of::<u64>()
}

/// What proves that a handle was opened.
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
    fn find_table(&self, process: u32) -> Option<File> {
        find(process, self.file, &format!("{NAME}{}", self.table), true).ok()
    }

    /// Says to the process that issued it that its handle was opened. Where that can't be said, it waits in vain.
    pub fn give_back(&self, process: u32) {
        if let Some(file) = self.find_table(process) {
            let _ = os::write_file_at(&file, &self.number.to_ne_bytes(), position(self.number));
        }
    }

    /// What became of it, as its sender tells.
    pub fn fate(&self, process: u32) -> Fate {
        let mut bytes = [0; size_of::<u64>()];
        let read = self.find_table(process).map(|file| os::read_file_at(&file, &mut bytes, position(self.number)));
        let Some(Ok(())) = read else { return Fate::Unknown };
        let written = u64::from_ne_bytes(bytes);
        let fates = [Fate::Opened, Fate::Expired, Fate::FileLimit, Fate::MemoryLimit];
        let is = |fate: &Fate| self.number != 0 && written == self.number | fate.code() << FATE_SHIFT;
        fates.into_iter().find(is).unwrap_or(Fate::Unknown)
    }
}

/// This process's ticket table, mapped.
pub(super) struct TicketTable {
    /// The process that made it: a forked child has a copy, and must leave it alone.
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

    /// A new ticket, which nobody has opened.
    pub fn issue(&mut self) -> Ticket {
        self.last += 1;
        self.place(self.last).store(0, Relaxed);
        Ticket { table: self.name.clone(), file: os::file_number(&self.file), number: self.last }
    }

    fn place(&self, number: u64) -> &AtomicU64 {
        let address = self.address + position(number);
        // SAFETY: the place lies in the mapping, which stays as long as the table; others write to it as to an atomic.
        unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }
    }

    /// Whether nobody waits for the ticket any more: it was opened, or given up.
    pub fn is_settled(&self, number: u64) -> bool {
        self.place(number).load(Relaxed) & ((1 << FATE_SHIFT) - 1) == number
    }

    /// Writes down why the sender gave up a ticket, unless it was opened.
    pub fn give_up(&self, number: u64, fate: Fate) {
        let written = number | fate.code() << FATE_SHIFT;
        let _ = self.place(number).compare_exchange(0, written, Relaxed, Relaxed);
    }
}

impl Drop for TicketTable {
    fn drop(&mut self) {
        // SAFETY: it was mapped for this table alone.
        let _ = unsafe { os::unmap(self.address, BYTES) };
    }
}
