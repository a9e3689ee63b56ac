//! Libraries that keep their blocks outside of our segments: a list tells their blocks apart from the C library's (law 4), and
//! their requests are counted.

use crate::allocator::{AllocError, Allocator, Block, BlockList, Description, Limit, Request};
use crate::failure;
use crate::ledger::Ledger;
use crate::stats::Stats;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The functions of a library.
///
/// # Safety
/// They keep malloc's contract in any thread: a block has the requested size, and is the caller's alone until it
/// is freed.
pub unsafe trait Library: Send + Sync + 'static {
    /// Whether blocks have the alignment that is requested. Otherwise requests are enlarged by it.
    const ALIGNS: bool;
    /// As [`Allocator::calls_out`] says.
    const CALLS_OUT: bool = false;
    /// As [`Allocator::is_lent`] says.
    const IS_LENT: bool = false;

    /// Describes the allocator.
    fn describe(&self) -> Description;

    /// The least alignment in bytes of every block, whatever its request asks for.
    fn alignment(&self) -> usize {
        1
    }

    /// Allocates a block, null if there is none; and says whether it reads zero.
    fn allocate(&self, request: Request) -> (*mut u8, bool);

    /// Frees a block.
    ///
    /// # Safety
    /// `allocate` returned it for `given` bytes, and nobody uses it any more.
    unsafe fn free(&self, raw: *mut u8, given: usize);

    /// The usable size of a block.
    ///
    /// # Safety
    /// `allocate` returned it for `given` bytes, and it was not freed.
    unsafe fn usable_size(&self, raw: *mut u8, given: usize) -> usize;

    /// Resizes a block as realloc(3) does: it may move. Null, and the block is as before, if there is no memory or no such function.
    ///
    /// # Safety
    /// It is a live block, as for `usable_size`; after success nobody uses the old address any more.
    unsafe fn reallocate(&self, _raw: *mut u8, _request: Request) -> *mut u8 {
        null_mut()
    }

    /// Returns idle memory to the system.
    fn trim(&self) {}
}

/// The entry of a block in the list.
#[derive(Clone, Copy)]
struct Note {
    /// The address that the library returned.
    raw: usize,
    /// The size requested from the library.
    given: usize,
    /// The size requested of us.
    asked: usize,
}

impl Note {
    fn pointer(self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.raw)
    }
}

/// An allocator on a library.
pub struct LibraryAllocator<L> {
    library: L,
    ledger: Arc<Ledger<Note>>,
    counts: Counts,
}

/// Exact counts of the requests of all threads.
#[derive(Default)]
pub(super) struct Counts {
    blocks: AtomicUsize,
    bytes: AtomicUsize,
    peak: AtomicUsize,
    allocations: AtomicU64,
    allocated: AtomicU64,
}

impl Counts {
    pub fn served(&self, bytes: usize) {
        self.allocations.fetch_add(1, Relaxed);
        self.blocks.fetch_add(1, Release);
        self.allocated.fetch_add(bytes as u64, Relaxed);
        let now = self.bytes.fetch_add(bytes, Release) + bytes;
        // Usually this is no peak, and a load is cheaper than a write.
        if now > self.peak.load(Relaxed) {
            self.peak.fetch_max(now, Relaxed);
        }
    }

    pub fn freed(&self, bytes: usize) {
        self.blocks.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    /// Some may change while others are read, but they agree: live blocks are never more than the allocated ones or the peak,
    /// because these are raised first and read last.
    pub fn stats(&self) -> Stats {
        let (blocks, in_use) = (self.blocks.load(Acquire), self.bytes.load(Acquire));
        Stats {
            in_use,
            active: in_use,
            mapped: in_use,
            peak_in_use: self.peak.load(Relaxed).max(in_use),
            blocks,
            allocations: self.allocations.load(Relaxed),
            allocated_bytes: self.allocated.load(Relaxed),
            ..Stats::default()
        }
    }
}

impl<L: Library> LibraryAllocator<L> {
    pub(super) fn on(library: L) -> Arc<Self> {
        Arc::new(Self { library, ledger: Ledger::new(), counts: Counts::default() })
    }

    /// The request with the alignment of all blocks, and the size to request from the library.
    fn enlarged(&self, request: Request) -> Result<(Request, usize), AllocError> {
        let request = request.aligned(request.align().max(self.library.alignment())).unwrap_or(request); // both were checked
        request.check().inspect_err(|&error| failure::remember(error))?;
        Ok((request, if L::ALIGNS { request.size() } else { request.size() + request.align() })) // which `check` left room for
    }

    /// The block for a request in the `given` bytes that the library returned for it.
    ///
    /// # Safety
    /// They live.
    unsafe fn block(&self, raw: NonNull<u8>, given: usize, request: Request) -> (Block, Note) {
        let (offset, asked) = (raw.align_offset(request.align()), request.size());
        // SAFETY: `offset` is less than the alignment, for which there is room.
        let (address, usable) = unsafe { (raw.add(offset), self.library.usable_size(raw.as_ptr(), given)) };
        let note = Note { raw: raw.as_ptr().expose_provenance(), given, asked };
        (Block { address, size: usable - offset, zeroed: false }, note)
    }
}

// SAFETY: the library keeps malloc's contract, and what it did not align or clear is aligned and cleared here.
unsafe impl<L: Library> Allocator for LibraryAllocator<L> {
    fn describe(&self) -> Description {
        self.library.describe()
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        let (request, given) = self.enlarged(request)?;
        let take = || {
            let (raw, zeroed) = self.library.allocate(request.with_size(given));
            NonNull::new(raw).map(|raw| (raw, zeroed))
        };
        let again = || {
            self.library.trim();
            take()
        };
        let taken = take().or_else(again).ok_or(AllocError::new(request.size(), Limit::Upstream));
        let (raw, zeroed) = taken.inspect_err(|&error| failure::remember(error))?;
        // SAFETY: the library has just returned it for these bytes.
        let (block, note) = unsafe { self.block(raw, given, request) };
        self.ledger.enter(block.address, note.asked, note).inspect_err(|&error| {
            // SAFETY: it was just allocated and is not in use.
            unsafe { self.library.free(raw.as_ptr(), given) };
            failure::remember(error);
        })?;
        if request.is_zeroed() && !zeroed {
            // SAFETY: the block was just allocated with this size.
            unsafe { block.address.write_bytes(0, note.asked) };
        }
        self.counts.served(note.asked);
        Ok(Block { zeroed: zeroed || request.is_zeroed(), ..block })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        if let Some(note) = self.ledger.leave(address) {
            self.counts.freed(note.asked);
            // SAFETY: what the library returned for a block that nobody uses any more (`Allocator::deallocate`).
            unsafe { self.library.free(note.pointer(), note.given) }
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        let Some(note) = self.ledger.get(address) else { return 0 };
        // SAFETY: what the library returned for a live block, which ends where the library's does.
        unsafe { self.library.usable_size(note.pointer(), note.given) - (address.addr().get() - note.raw) }
    }

    /// Resizes a block by the library's own function, which may move its pages in place of copying them.
    unsafe fn reallocate(&self, address: NonNull<u8>, request: Request) -> Result<Block, AllocError> {
        let (request, given) = self.enlarged(request)?;
        let resized = self.ledger.relocate(address, request.size(), |old| {
            // The content stays as far behind the library's address as it was, where the block may not begin any more.
            let offset = address.addr().get() - old.raw;
            let given = given.max(offset + request.size());
            // SAFETY: what the library returned for a live block. The content lies in what it returns now, before it is moved and after.
            unsafe {
                let raw = self.library.reallocate(old.pointer(), request.with_size(given));
                let raw = NonNull::new(raw).ok_or(AllocError::new(request.size(), Limit::Upstream))?;
                let (block, note) = self.block(raw, given, request);
                if block.address != raw.add(offset) {
                    block.address.copy_from(raw.add(offset), old.asked.min(note.asked));
                }
                self.counts.freed(old.asked);
                self.counts.served(note.asked);
                Ok((block, note))
            }
        });
        // SAFETY: the block is still as it was, and its content lies within it and within the new one, which do not overlap.
        resized.or_else(|_| unsafe {
            let block = self.allocate(request.with_zeroed(false))?;
            block.address.copy_from_nonoverlapping(address, self.usable_size(address).min(request.size()));
            self.deallocate(address);
            Ok(Block { zeroed: false, ..block })
        })
    }

    /// Returns 0: the libraries do not tell how much they give back.
    fn trim(&self) -> usize {
        self.library.trim();
        0
    }

    fn stats(&self) -> Stats {
        self.counts.stats()
    }

    fn list(&self) -> Option<&dyn BlockList> {
        Some(&*self.ledger)
    }

    fn is_lent(&self) -> bool {
        L::IS_LENT
    }

    fn calls_out(&self) -> bool {
        L::CALLS_OUT
    }
}

// ---- Functions of a program: addresses from ctypes, cffi, Numba or a library, called without Python ---------------------

/// C functions with the signatures of NumPy's handlers (NEP 49). `free` receives the size that the block was requested with.
#[derive(Clone, Copy, Debug)]
pub struct FunctionsTable {
    /// `malloc(context, size)`.
    pub malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    /// `free(context, pointer, size)`.
    pub free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
    /// `calloc(context, count, size)`. Without it, memory from `malloc` is cleared.
    pub calloc: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void>,
    /// The first argument of each call.
    pub context: *mut c_void,
}

/// An allocator made of C functions. They know nothing of alignment, so each request is enlarged by its alignment.
pub type Functions = LibraryAllocator<FunctionsLibrary>;

/// The functions, and how `free` is called.
pub struct FunctionsLibrary {
    table: FunctionsTable,
    /// Runs its argument, which calls `free`.
    around_free: fn(&dyn Fn()),
}

// SAFETY: `Functions::new` requires that any thread may call the functions with this context.
unsafe impl Send for FunctionsLibrary {}
// SAFETY: `Functions::new` requires that several threads may do so at once.
unsafe impl Sync for FunctionsLibrary {}

impl Functions {
    /// Creates an allocator that calls the functions of `table`. `around_free` runs its argument once: a language puts state aside
    /// there that `free` must not meet; others pass `|free| free()`.
    ///
    /// # Safety
    /// The functions keep malloc's contract, may be called with the context by several threads at once, do not unwind, and
    /// remain callable while the allocator or any of its blocks lives.
    pub unsafe fn new(table: FunctionsTable, around_free: fn(&dyn Fn())) -> Arc<Self> {
        Self::on(FunctionsLibrary { table, around_free })
    }
}

// SAFETY: `Functions::new` requires that the functions keep malloc's contract in any thread.
unsafe impl Library for FunctionsLibrary {
    const ALIGNS: bool = false;
    const CALLS_OUT: bool = true;
    const IS_LENT: bool = true;

    fn describe(&self) -> Description {
        let FunctionsTable { malloc, free, calloc, context } = self.table;
        let calloc = calloc.map_or_else(|| "None".to_owned(), |calloc| format!("{:#x}", calloc as usize));
        let (malloc, free, context) = (malloc as usize, free as usize, context as usize);
        Description::opaque(format!(
            "from_functions(malloc={malloc:#x}, free={free:#x}, calloc={calloc}, context={context:#x})"
        ))
    }

    fn allocate(&self, request: Request) -> (*mut u8, bool) {
        let FunctionsTable { malloc, calloc, context, .. } = self.table;
        // SAFETY: `Functions::new` requires that both may be called with any size in any thread.
        unsafe {
            match calloc.filter(|_| request.is_zeroed()) {
                Some(calloc) => (calloc(context, 1, request.size()).cast(), true),
                None => (malloc(context, request.size()).cast(), false),
            }
        }
    }

    unsafe fn free(&self, raw: *mut u8, given: usize) {
        // SAFETY: `malloc` or `calloc` of the table returned the block for `given` bytes, and nobody uses it any more.
        (self.around_free)(&|| unsafe { (self.table.free)(self.table.context, raw.cast(), given) });
    }

    unsafe fn usable_size(&self, _raw: *mut u8, given: usize) -> usize {
        given
    }
}
