//! Libraries that keep their blocks outside of our segments: a list tells their blocks from the C library's (law 4).

use super::refused;
use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::failure;
use crate::ledger::Ledger;
use std::ptr::NonNull;
use std::sync::Arc;

/// Blocks up to this size keep their end, however much they shrink.
const KEPT_WHOLE: usize = 1 << 20;

/// The functions of a library.
///
/// # Safety
/// They keep malloc's contract in any thread: a block has the requested size, and is the caller's alone until it is given
/// back.
pub unsafe trait Library: Send + Sync + 'static {
    /// Whether blocks have the alignment that is requested. Otherwise requests are enlarged by it.
    const ALIGNS: bool;
    /// Whether a free may run code that is not the library's.
    const CALLS_OUT: bool = false;

    /// Describes the allocator.
    fn describe(&self) -> Description;

    /// The alignment in bytes of every block, whatever less its request asks for.
    fn alignment(&self) -> usize {
        1
    }

    /// Takes a block, null if there is none; and whether it reads zero.
    fn take(&self, request: Request) -> (*mut u8, bool);

    /// Gives a block back.
    ///
    /// # Safety
    /// `take` returned it for `given` bytes, and nobody uses it any more.
    unsafe fn give_back(&self, raw: *mut u8, given: usize);

    /// The usable size of a block.
    ///
    /// # Safety
    /// `take` returned it for `given` bytes, and it was not given back.
    unsafe fn usable(&self, raw: *mut u8, given: usize) -> usize;

    /// Resizes a block in place, if that is possible. It keeps its end, unless it is large and that is most of it.
    ///
    /// # Safety
    /// As for `usable`; what lies beyond `size` is not used any more.
    unsafe fn resize(&self, raw: *mut u8, given: usize, size: usize) -> bool {
        // SAFETY: as demanded.
        let usable = unsafe { self.usable(raw, given) };
        size <= usable && (size >= usable / 2 || usable <= KEPT_WHOLE)
    }

    /// Returns idle memory to the system.
    fn trim(&self) {}
}

/// What the list has of a block.
#[derive(Clone, Copy)]
struct Note {
    /// The address that the library returned.
    raw: usize,
    /// The size requested from the library.
    given: usize,
}

impl Note {
    fn pointer(self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.raw)
    }
}

/// An allocator on a library.
pub struct Listed<L> {
    library: L,
    living: Arc<Ledger<Note>>,
}

impl<L: Library> Listed<L> {
    pub(super) fn on(library: L) -> Arc<Self> {
        Arc::new(Self { library, living: Ledger::new() })
    }
}

// SAFETY: the library keeps malloc's contract, and what it did not align or clear is aligned and cleared here.
unsafe impl<L: Library> Allocator for Listed<L> {
    fn describe(&self) -> Description {
        self.library.describe()
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        let request = request.aligned(request.align().max(self.library.alignment())).unwrap_or(request); // both were checked
        request.check().inspect_err(|&error| failure::remember(error))?;
        let (size, align) = (request.size(), request.align());
        let given = if L::ALIGNS { size } else { size + align }; // `check` left room for the alignment
        let take = || {
            let (raw, zeroed) = self.library.take(request.with_size(given));
            NonNull::new(raw).map(|raw| (raw, zeroed))
        };
        let again = || {
            self.library.trim();
            take()
        };
        let (raw, mut zeroed) = take().or_else(again).ok_or_else(|| refused(size))?;
        // SAFETY: less than the alignment, for which there is room.
        let address = unsafe { raw.add(raw.align_offset(align)) };
        let note = Note { raw: raw.as_ptr().expose_provenance(), given };
        if let Err(error) = self.living.enter(address, size, note) {
            // SAFETY: it was just allocated and is not in use.
            unsafe { self.library.give_back(raw.as_ptr(), given) };
            failure::remember(error);
            return Err(error);
        }
        if request.is_zeroed() && !zeroed {
            // SAFETY: the block was just allocated with this size.
            unsafe { address.write_bytes(0, size) };
            zeroed = true;
        }
        // SAFETY: it was just allocated.
        let usable = unsafe { self.library.usable(raw.as_ptr(), given) };
        Ok(Block { address, size: usable - (address.addr().get() - note.raw), zeroed })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        if let Some(note) = self.living.leave(address) {
            // SAFETY: what the library returned for a block that nobody uses any more (`Allocator::deallocate`).
            unsafe { self.library.give_back(note.pointer(), note.given) }
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        let Some(note) = self.living.get(address) else { return 0 };
        // SAFETY: what the library returned for a live block, which ends where the library's does.
        unsafe { self.library.usable(note.pointer(), note.given) - (address.addr().get() - note.raw) }
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        let Some(note) = self.living.get(address) else { return false };
        let Some(size) = size.checked_add(address.addr().get() - note.raw) else { return false };
        // SAFETY: what the library returned for a live block whose lost end nobody uses (`Allocator::resize_in_place`).
        unsafe { self.library.resize(note.pointer(), note.given, size) }
    }

    /// Returns 0: how much the libraries give back they do not tell.
    fn trim(&self) -> usize {
        self.library.trim();
        0
    }

    fn owns(&self, address: NonNull<u8>) -> Option<bool> {
        Some(self.living.get(address).is_some())
    }

    fn accepts(&self, address: usize) -> bool {
        self.library.alignment() > 1 && address.is_multiple_of(self.library.alignment())
    }

    fn alignment(&self) -> usize {
        self.library.alignment()
    }

    /// What is not the library's code may take memory from anywhere.
    fn is_lent(&self) -> bool {
        L::CALLS_OUT
    }

    fn must_stay(&self) -> bool {
        self.living.any()
    }

    fn calls_out(&self) -> bool {
        L::CALLS_OUT
    }
}
