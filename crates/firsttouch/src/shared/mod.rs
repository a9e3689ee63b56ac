//! Memory that several processes map: a memory file, which the kernel frees when nobody maps or knows it any more, also
//! where a process was killed.
//!
//! A [`Handle`] says where it can be found: by which number which process knows it. Its name, which nobody can guess, is
//! looked at before and after it is opened, so a number that means something else by now is noticed.

#![allow(unsafe_code)] // Safety: a mapping is made here and taken away when its owner is dropped, and not before.

mod in_flight;
mod tickets;

pub use in_flight::wait_until_opened;
pub use tickets::{Fate, Ticket};

use crate::error::AllocError;
use crate::layout::round_up;
use crate::numa::policy::Orders;
use crate::os::{self, Errno};
use crate::pages::mapping::{Mapper, settle, whole_pages};
use crate::pages::page::Page;
use crate::pages::placement::Placement;
use crate::pages::receipt::Receipt;
use crate::reason::Reason;
use std::fs::File;

/// What names of memory files begin with.
const NAME: &str = "firsttouch:";
/// Instead of bytes of a page.
const TRANSPARENT: usize = 1;

/// Where shared memory can be found by another process of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// Its own name.
    pub token: String,
    /// The process that knows it.
    pub process: u32,
    /// By which number.
    pub file: i32,
    /// Bytes to be mapped.
    pub size: usize,
    /// 0 for base pages, 1 for transparent huge ones, else bytes of an explicit one.
    pub page: usize,
    /// Proof that it was opened is to be given here; see [`Ticket`].
    pub ticket: Ticket,
}

/// Why shared memory can't be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no such process any more.
    Ended,
    /// The process is there and holds it no more, for a reason.
    Dropped(Fate),
    /// The handle does not fit the memory that it names: it was damaged, or made up.
    Invalid,
    /// It belongs to another user.
    NotPermitted,
    /// The kernel's error.
    Errno(Errno),
}

/// Shared memory, mapped.
pub struct Shared {
    file: Option<File>,
    token: String,
    address: usize,
    size: usize,
    page: usize,
    write: bool,
    receipt: Option<(Placement, Receipt)>,
    tickets: in_flight::Tickets,
}

/// Makes mappings of one new memory file.
struct Maker<'a> {
    name: &'a str,
    file: Option<File>,
    /// Why there is no file at all.
    refused: Option<Errno>,
}

impl Maker<'_> {
    fn map(&mut self, size: usize, align: usize, huge: Option<usize>) -> Result<(usize, usize), Errno> {
        let file = with_descriptor(Errno::NO_DESCRIPTOR, || os::memory_file(self.name, size, huge));
        let file = file.inspect_err(|&error| self.refused = Some(error))?;
        let at = os::map_file(&file, size, align, true)?;
        self.file = Some(file);
        Ok((at, size))
    }
}

impl Mapper for Maker<'_> {
    fn base(&mut self, size: usize, align: usize) -> Result<(usize, usize), Errno> {
        self.refused = None;
        self.map(size, align, None)
    }

    fn transparent(&mut self, size: usize, align: usize) -> Result<(usize, usize), Reason> {
        let page = os::huge_page_size().ok_or(Reason::Unsupported)?;
        if size < page {
            return Err(Reason::Small);
        }
        if !os::transparent_huge_pages_shared() {
            return Err(Reason::OffShared);
        }
        let whole = round_up(size, page).ok_or(Reason::Small)?;
        let mapping = self.map(whole, align.max(page), None).map_err(Reason::of)?;
        os::advise_huge(mapping.0, mapping.1).map_err(|error| {
            // SAFETY: it was just mapped, and nobody knows it.
            let _ = unsafe { os::unmap(mapping.0, mapping.1) };
            Reason::of(error)
        })?;
        Ok(mapping)
    }

    fn explicit(
        &mut self,
        size: usize,
        align: usize,
        page: usize,
        orders: Option<&Orders>,
    ) -> Result<(usize, usize), Reason> {
        let whole = whole_pages(size, align, page)?;
        let pool = |error| if error == Errno::NO_MEMORY { Reason::Pool } else { Reason::of(error) };
        settle(self.map(whole, page, Some(page)).map_err(pool)?, page, orders)
    }
}

/// Why new shared memory can't be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMade {
    /// There is no memory, or not as asked for.
    Memory(AllocError),
    /// The system lets this process make no memory file (no number is left, its size passes a limit, ...).
    File(Errno),
}

impl Shared {
    /// New memory of at least `size` bytes, that reads zero.
    ///
    /// # Errors
    /// See [`NotMade`].
    pub fn new(size: usize, placement: &Placement) -> Result<Self, NotMade> {
        let token: String = os::random().iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{NAME}{token}");
        let mut maker = Maker { name: &name, file: None, refused: None };
        let placed = placement.map_by(&mut maker, size.max(1), os::page_size());
        let placed = placed.map_err(|error| match maker.refused {
            Some(refused) if !placement.strict => NotMade::File(refused),
            _ => NotMade::Memory(error),
        })?;
        let page = match placed.receipt.page {
            Page::Base => 0,
            Page::Transparent => TRANSPARENT,
            Page::Explicit(bytes) => bytes,
        };
        let (file, receipt) = (maker.file, Some((placement.clone(), placed.receipt)));
        let tickets = in_flight::Tickets::default();
        Ok(Self { file, token, address: placed.address, size: placed.size, page, write: true, receipt, tickets })
    }

    /// What another process shares; `write` maps it writable.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn open(handle: &Handle, write: bool) -> Result<Self, Refused> {
        let name = format!("{NAME}{}", handle.token);
        let find = || find(handle.process, handle.file, &name, write);
        let file = with_descriptor(Refused::Errno(Errno::NO_DESCRIPTOR), find).map_err(|refused| match refused {
            Refused::Dropped(_) => Refused::Dropped(handle.ticket.fate(handle.process)),
            other => other,
        })?;
        let align = match handle.page {
            0 => os::page_size(),
            TRANSPARENT => os::huge_page_size().unwrap_or(os::page_size()),
            bytes if bytes.is_power_of_two() && handle.size.is_multiple_of(bytes) => bytes,
            _ => return Err(Refused::Invalid),
        };
        // Beyond the end of the file there is a signal (SIGBUS) instead of memory.
        if handle.size == 0 || handle.size > os::file_size(&file).map_err(Refused::Errno)? {
            return Err(Refused::Invalid);
        }
        let address = os::map_file(&file, handle.size, align, write).map_err(Refused::Errno)?;
        if handle.page == TRANSPARENT {
            let _ = os::advise_huge(address, handle.size); // the pages that are there are what they are
        }
        handle.ticket.give_back(handle.process);
        let (token, tickets) = (handle.token.clone(), in_flight::Tickets::default());
        let (size, page) = (handle.size, handle.page);
        Ok(Self { file: Some(file), token, address, size, page, write, receipt: None, tickets })
    }

    /// A handle that is good for one opening after this is dropped, for a while; and for any number before.
    ///
    /// # Errors
    /// Where the process has no room for its proofs.
    pub fn handle(&self) -> Result<Handle, Errno> {
        let file = self.file.as_ref().ok_or(Errno::UNSUPPORTED)?;
        let ticket = self.tickets.issue()?;
        let (token, process) = (self.token.clone(), std::process::id());
        Ok(Handle { token, process, file: os::file_number(file), size: self.size, page: self.page, ticket })
    }

    /// Where it begins.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Bytes mapped.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether it may be written here.
    pub fn is_writable(&self) -> bool {
        self.write
    }

    /// Its own name.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// What was asked for and granted, where this process made it.
    pub fn receipt(&self) -> Option<&(Placement, Receipt)> {
        self.receipt.as_ref()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: whoever used the mapping held its owner, which goes now.
        let _ = unsafe { os::unmap(self.address, self.size) };
        if let Some(file) = self.file.take() {
            self.tickets.keep(file, self.size); // until who is to have it has opened it
        }
    }
}

/// Tries again without the oldest memory in flight where `none_left` says that this process has no file descriptor.
fn with_descriptor<T, E: PartialEq>(none_left: E, attempt: impl Fn() -> Result<T, E>) -> Result<T, E> {
    loop {
        match attempt() {
            Err(error) if error == none_left && in_flight::release_oldest() => {}
            result => return result,
        }
    }
}

/// A number of this process for the memory file `name` that `process` knows by `number`.
fn find(process: u32, number: i32, name: &str, write: bool) -> Result<File, Refused> {
    let full = format!("/memfd:{name} (deleted)");
    let refused = |error| match error {
        Errno::NOTHING_THERE if os::process_exists(process) => Refused::Dropped(Fate::Unknown),
        Errno::NOTHING_THERE => Refused::Ended,
        Errno::NO_ACCESS | Errno::NOT_PERMITTED => Refused::NotPermitted,
        error => Refused::Errno(error),
    };
    // Before it is opened: opening something else may have consequences.
    if os::file_name(process, number).map_err(refused)? != full {
        return Err(Refused::Dropped(Fate::Unknown));
    }
    let file = os::open_memory_file(process, number, write).map_err(refused)?;
    let found = os::file_name(std::process::id(), os::file_number(&file)).map_err(Refused::Errno)?;
    if found == full { Ok(file) } else { Err(Refused::Dropped(Fate::Unknown)) }
}
