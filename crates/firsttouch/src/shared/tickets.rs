//! Tickets: how a process that opens a handle notifies the sender, and how the sender reports what became of a handle.
//!
//! Each handle has a number. The process that opens it writes the number into a small memory file of the sender's, the
//! ticket table, in the slot of the ticket. A sender that releases the memory first writes the reason there.

use super::find;
use crate::os::{self, Errno};
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of slots. Reusing a slot forgets its previous ticket.
pub(super) const PLACES: u64 = 1 << 16;
const BYTES: usize = PLACES as usize * size_of::<u64>();
/// The prefix of the file's name; a random name follows.
const NAME: &str = "firsttouch-tickets:";
/// A slot holds the ticket number in its lower bits and the fate above.
const FATE_SHIFT: u32 = 56;

/// The fate of a ticket whose memory the sender no longer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Unknown: the sender dropped the memory before it made this handle, or the slot was reused.
    Unknown,
    /// The handle was opened, by this or another process.
    Opened,
    /// The handle was not opened in time.
    Expired,
    /// Released early to leave file descriptors for the rest of the sender.
    FileLimit,
    /// Released early to leave memory for others.
    MemoryLimit,
}

impl Fate {
    fn code(self) -> u64 {
        match self {
            Self::Unknown | Self::Opened => 0, // an opener writes the number alone
            Self::Expired => 1,
            Self::FileLimit => 2,
            Self::MemoryLimit => 3,
        }
    }
}

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
    fn find_table(&self, process: u32) -> Option<File> {
        find(process, self.file, &format!("{NAME}{}", self.table), true).ok()
    }

    /// Notifies the issuing process that its handle was opened. If that fails, the sender waits until the ticket
    /// expires.
    pub fn give_back(&self, process: u32) {
        if let Some(file) = self.find_table(process) {
            let _ = os::write_file_at(&file, &self.number.to_ne_bytes(), position(self.number));
        }
    }

    /// What became of the ticket, according to its sender.
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

    /// Whether the ticket was opened or given up.
    pub fn is_settled(&self, number: u64) -> bool {
        self.place(number).load(Relaxed) & ((1 << FATE_SHIFT) - 1) == number
    }

    /// Records why the sender gave up a ticket, unless it was opened.
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
