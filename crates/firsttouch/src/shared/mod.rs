//! Memory that several processes map: a memory file, which the kernel frees when no process maps or holds it any more,
//! even if a process was killed.
//!
//! A [`Handle`] names the process that holds the file and its descriptor there, and the file's own name, which cannot be
//! guessed. Linux finds it by the first two and compares the name, so a descriptor that has been reused is noticed; Windows
//! finds it by the name.

#![allow(unsafe_code)] // Safety: a mapping exists from its creation here until its owner is dropped.

mod in_flight;

pub use in_flight::{Ticket, wait_until_opened};

use crate::error::AllocError;
use crate::failure;
use crate::layout::round_up;
use crate::os::{self, Errno};
use crate::reason::Reason;
use crate::size::Bytes;
use std::fs::File;

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
    /// Settled when the handle is opened; see [`Ticket`].
    pub ticket: Ticket,
}

/// Why shared memory cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The process has ended, or no longer holds it.
    Dropped,
    /// The handle does not match the memory it names: it was corrupted or forged.
    Invalid,
    /// The memory belongs to another user.
    NotPermitted,
    /// Another error of the kernel.
    Errno(Errno),
}

impl Refused {
    /// Returns a message about a handle that was refused.
    pub fn message(self, handle: &Handle) -> String {
        let (process, size) = (handle.process, Bytes(handle.size));
        match self {
            Self::Dropped => format!(
                "process {process} has ended, or no longer holds this shared array: a handle is good as long as its sender \
                 lives and holds the array, and can be opened once within {} seconds after it was released. Unopened arrays \
                 may take a quarter of its file descriptors (RLIMIT_NOFILE) and of the memory that is free; the oldest is \
                 released first. Keep the array until all others have opened it",
                in_flight::GOOD_FOR.as_secs()
            ),
            Self::Invalid => {
                format!("this is not a valid handle of a shared array: its {size} do not fit the memory")
            }
            Self::NotPermitted => format!(
                "process {process}, which sent this shared array, may not be looked into (/proc/{process}/fd): it belongs to \
                 another user, or protects itself"
            ),
            Self::Errno(Errno::NO_MEMORY) => {
                format!("cannot map {size} of shared memory: RLIMIT_AS (ulimit -v) leaves too little")
            }
            Self::Errno(Errno::NO_DESCRIPTOR) => format!(
                "a shared array of process {process} cannot be opened: each takes a file descriptor, and RLIMIT_NOFILE \
                 (ulimit -n) leaves none"
            ),
            Self::Errno(error) => {
                format!("a shared array of process {process} cannot be opened: {}", Reason::of(error))
            }
        }
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

/// Why new shared memory cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMade {
    /// There is no memory.
    Memory(AllocError),
    /// The system does not create the memory file (no descriptor is left, the size exceeds a limit, ...).
    File(Errno),
}

impl Shared {
    /// Creates shared memory of at least `size` bytes, all zero.
    ///
    /// # Errors
    /// See [`NotMade`].
    pub fn new(size: usize) -> Result<Self, NotMade> {
        let token = random_name();
        let name = format!("{NAME}{token}");
        let no_memory = |error| {
            let error = AllocError::new(size, os::why_refused(size, error));
            failure::remember(error);
            NotMade::Memory(error)
        };
        let size = round_up(size.max(1), os::page_size()).ok_or_else(|| no_memory(Errno::NO_MEMORY))?;
        let file = with_descriptor(Errno::NO_DESCRIPTOR, || os::memory_file(&name, size));
        let file =
            file.map_err(|error| if error == Errno::NO_MEMORY { no_memory(error) } else { NotMade::File(error) })?;
        let address = os::map_file(&file, size, true).map_err(no_memory)?;
        Ok(Self { file: Some(file), token, address, size, write: true })
    }

    /// Maps memory that another process shares, writable if `write`.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn open(handle: &Handle, write: bool) -> Result<Self, Refused> {
        let name = format!("{NAME}{}", handle.token);
        let find = || find(handle.process, handle.file, &name, write);
        let file = with_descriptor(Refused::Errno(Errno::NO_DESCRIPTOR), find)?;
        if handle.size == 0 {
            return Err(Refused::Invalid);
        }
        let address = os::map_file(&file, handle.size, write).map_err(|error| match error {
            Errno::INVALID => Refused::Invalid,
            error => Refused::Errno(error),
        })?;
        handle.ticket.give_back(handle.process);
        Ok(Self { file: Some(file), token: handle.token.clone(), address, size: handle.size, write })
    }

    /// Returns a handle. Until this memory is dropped it can be opened any number of times; after that once, for a
    /// limited time.
    ///
    /// # Errors
    /// If the ticket table cannot be created.
    pub fn handle(&self) -> Result<Handle, Errno> {
        let file = self.file.as_ref().ok_or(Errno::UNSUPPORTED)?;
        let ticket = in_flight::issue(file)?;
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
            in_flight::keep(file, self.size); // until its receiver has opened it
        }
    }
}

/// Returns a name that cannot be guessed.
fn random_name() -> String {
    os::random().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Retries without the oldest memory in flight if the error is `none_left`: the process has no free file descriptor.
fn with_descriptor<T, E: PartialEq>(none_left: E, attempt: impl Fn() -> Result<T, E>) -> Result<T, E> {
    loop {
        match attempt() {
            Err(error) if error == none_left && in_flight::release_oldest() => {}
            result => return result,
        }
    }
}

/// Opens the memory file `name` of `process`, which has the descriptor `number` there.
fn find(process: u32, number: i32, name: &str, write: bool) -> Result<File, Refused> {
    os::find_memory_file(process, number, name, write).map_err(|error| match error {
        Errno::NOTHING_THERE => Refused::Dropped,
        Errno::NO_ACCESS | Errno::NOT_PERMITTED => Refused::NotPermitted,
        error => Refused::Errno(error),
    })
}
