//! An allocator made of C functions: addresses from ctypes, cffi, Numba or a library, called without Python.
//!
//! The functions know nothing of alignment, so each request is enlarged by its alignment. The address that a function
//! returned is kept in a ledger, not in the block (law 4).

#![allow(unsafe_code)]

use super::refused;
use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::description::Value;
use crate::failure;
use crate::heap::ledger::Ledger;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

/// C functions with the signatures of NumPy's handlers (NEP 49). `free` receives the size that the block was requested
/// with.
#[derive(Clone, Copy, Debug)]
pub struct FunctionsTable {
    /// `malloc(context, size)`.
    pub malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    /// `free(context, pointer, size)`.
    pub free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
    /// `calloc(context, count, size)`. Without it, memory from `malloc` is cleared.
    pub calloc: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void>,
    /// `realloc(context, pointer, size)`. Without it, blocks are moved.
    pub realloc: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void>,
    /// The first argument of each call.
    pub context: *mut c_void,
}

/// What the ledger records of a block.
#[derive(Clone, Copy)]
struct Note {
    /// The address that the function returned.
    raw: usize,
    /// The size requested from the function.
    given: usize,
    /// The block's alignment, for which `given` has room.
    align: usize,
}

impl Note {
    /// The address of the block.
    fn address(&self) -> usize {
        self.raw.next_multiple_of(self.align)
    }

    /// The usable size of the block.
    fn usable(&self) -> usize {
        self.given - (self.address() - self.raw)
    }
}

/// See the module.
pub struct Functions {
    table: FunctionsTable,
    /// Runs what it is given, which calls `free`.
    around_free: fn(&dyn Fn()),
    living: Arc<Ledger<Note>>,
}

// SAFETY: `new` requires that any thread may call the functions with this context.
unsafe impl Send for Functions {}
// SAFETY: as above.
unsafe impl Sync for Functions {}

impl Functions {
    /// Creates an allocator that calls the functions of `table`.
    ///
    /// # Safety
    /// The functions do what their names say, may be called from any thread with the context, do not unwind, and
    /// remain callable while the allocator or any of its blocks lives.
    pub unsafe fn new(table: FunctionsTable) -> Arc<Self> {
        // SAFETY: the same is required.
        unsafe { Self::with_free_inside(table, |free| free()) }
    }

    /// The same for a language with state that `free` must not meet: `around_free` puts it aside while it runs what it is
    /// given, once.
    ///
    /// # Safety
    /// As for `new`.
    pub unsafe fn with_free_inside(table: FunctionsTable, around_free: fn(&dyn Fn())) -> Arc<Self> {
        Arc::new(Self { table, around_free, living: Ledger::new() })
    }

    /// Gives back what a function returned.
    ///
    /// # Safety
    /// `raw` came from these functions, for `given` bytes, and nobody uses it any more.
    unsafe fn give_back(&self, raw: *mut c_void, given: usize) {
        // SAFETY: `new` requires that `free` does what its name says; the rest is required here.
        (self.around_free)(&|| unsafe { (self.table.free)(self.table.context, raw, given) });
    }

    fn note(&self, address: NonNull<u8>) -> Option<Note> {
        self.living.get(address)
    }

    /// Allocates `given` bytes with the functions. Also returns whether they read zero.
    fn raw(&self, given: usize, zeroed: bool) -> (*mut c_void, bool) {
        let FunctionsTable { malloc, calloc, context, .. } = self.table;
        // SAFETY: `new` requires that the functions do what their names say.
        unsafe {
            match calloc.filter(|_| zeroed) {
                Some(calloc) => (calloc(context, 1, given), true),
                None => (malloc(context, given), false),
            }
        }
    }

    fn block(note: Note, zeroed: bool) -> Block {
        let raw = note.raw as *mut u8;
        // SAFETY: the function's result is not null, and the sum lies inside the block.
        let address = unsafe { NonNull::new_unchecked(raw.add(note.address() - note.raw)) };
        Block { address, size: note.usable(), zeroed }
    }

    /// Resizes with the given `realloc`, which keeps the content at the same offset from the address that it returns;
    /// the content is then moved to the alignment. `None` if there is no `realloc`.
    fn resize(&self, old: Note, request: Request) -> Option<Result<Block, AllocError>> {
        let FunctionsTable { realloc: Some(realloc), context, .. } = self.table else { return None };
        let align = request.align().max(old.align);
        let given = request.size().checked_add(align)?;
        // The block may move, and the ledger must have room for its new address.
        if let Err(error) = self.living.make_room(request.size()) {
            failure::remember(error);
            return Some(Err(error));
        }
        let before = Self::block(old, false).address;
        let skipped = old.address() - old.raw;
        self.living.leave(before);
        // SAFETY: the function keeps realloc's contract (`Functions::new`), and the block is live (`reallocate`).
        let raw = unsafe { realloc(context, old.raw as *mut c_void, given) };
        if raw.is_null() {
            while self.living.enter(before, request.size(), old).is_err() {} // its entry's room is still there
            return Some(Err(refused(request.size())));
        }
        let note = Note { raw: raw as usize, given, align };
        let block = Self::block(note, false);
        let kept = old.usable().min(request.size());
        // SAFETY: `skipped` is below the old alignment, for which `given` has room beyond the size, so both ranges lie
        // in the new block; they may overlap.
        unsafe { block.address.as_ptr().copy_from(raw.cast::<u8>().add(skipped), kept) };
        while self.living.enter(block.address, request.size(), note).is_err() {} // room was made above
        Some(Ok(block))
    }
}

// SAFETY: blocks lie in what the functions returned, at their alignment, and the functions keep the rest of
// malloc's contract (`Functions::new`); what they did not zero is zeroed here (law 2).
unsafe impl Allocator for Functions {
    fn describe(&self) -> Description {
        let FunctionsTable { malloc, free, calloc, realloc, context } = self.table;
        Description::of("from_functions")
            .named("malloc", Value::Address(malloc as usize))
            .named("free", Value::Address(free as usize))
            .named("calloc", calloc.map(|f| Value::Address(f as usize)))
            .named("realloc", realloc.map(|f| Value::Address(f as usize)))
            .named("context", Value::Address(context as usize))
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        let (size, align, zeroed) = (request.size(), request.align(), request.is_zeroed());
        let given = size + align;
        let (raw, is_zero) = self.raw(given, zeroed);
        if raw.is_null() {
            return Err(refused(size));
        }
        let note = Note { raw: raw as usize, given, align };
        let block = Self::block(note, zeroed);
        if let Err(error) = self.living.enter(block.address, size, note) {
            // SAFETY: it was just allocated and is not in use.
            unsafe { self.give_back(raw, given) };
            failure::remember(error);
            return Err(error);
        }
        if zeroed && !is_zero {
            // SAFETY: the block was just allocated with this size.
            unsafe { block.address.write_bytes(0, size) };
        }
        Ok(block)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        if let Some(note) = self.living.leave(address) {
            // SAFETY: the caller's promise.
            unsafe { self.give_back(note.raw as *mut c_void, note.given) };
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        self.note(address).map_or(0, |note| note.usable())
    }

    unsafe fn reallocate(&self, address: NonNull<u8>, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        let Some(old) = self.note(address) else { return Err(refused(request.size())) };
        if let Some(resized) = self.resize(old, request) {
            return resized;
        }
        let fits = request.size() <= old.usable() && request.align() <= old.align;
        if fits && request.size() >= old.usable() / 2 {
            return Ok(Self::block(old, false));
        }
        let block = self.allocate(request.with_zeroed(false))?;
        // SAFETY: the old block is live (`Allocator::reallocate`), the new one overlaps no live block, and both have
        // that many bytes.
        unsafe {
            block.address.copy_from_nonoverlapping(address, old.usable().min(request.size()));
            self.deallocate(address);
        }
        Ok(Block { zeroed: false, ..block })
    }

    fn must_stay(&self) -> bool {
        self.living.any()
    }

    fn owns(&self, address: NonNull<u8>) -> Option<bool> {
        Some(self.note(address).is_some())
    }
}
