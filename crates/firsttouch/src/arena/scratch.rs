//! Scratch allocators by other libraries: a Rust trait, and a table of C functions that implements it.

use super::error::ScratchTableError;
use crate::allocator::{AllocError, Limit};
use crate::failure;
use std::ffi::c_void;
use std::ptr::{NonNull, with_exposed_provenance};

/// An allocator whose memory is freed by rewinding to a mark. It is used by one thread at a time, not always the same.
///
/// # Safety
/// A block has the requested size and alignment, overlaps no other block that is still allocated, and stays valid until
/// the allocator is rewound to a mark made before it, or is dropped. No method panics.
pub unsafe trait Scratch: Send {
    /// Allocates `size` bytes, uninitialized, at a multiple of `align`, a power of two up to 1 GiB. Zero bytes are served
    /// as one.
    ///
    /// # Errors
    /// What was requested and which limit was exceeded.
    fn allocate(&self, size: usize, align: usize) -> Result<NonNull<u8>, AllocError>;

    /// Returns the current position, as a number that [`rewind`](Self::rewind) understands.
    fn mark(&self) -> u64;

    /// Rewinds to a mark, which invalidates it and all later marks.
    ///
    /// # Safety
    /// The mark was made by this allocator and is valid; what was allocated since is not used afterwards.
    unsafe fn rewind(&self, mark: u64);
}

/// A scratch allocator as a table of C functions, which a library in any language can pass by address. The functions must
/// keep the promises of [`Scratch`], and must not unwind.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScratchTable {
    /// The first argument of each function.
    pub context: *mut c_void,
    /// `allocate(context, size, align)`; returns null if there is no memory.
    pub allocate: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut u8,
    /// `mark(context)`.
    pub mark: unsafe extern "C" fn(*mut c_void) -> u64,
    /// `rewind(context, mark)`.
    pub rewind: unsafe extern "C" fn(*mut c_void, u64),
}

// SAFETY: any thread may call the table's functions, one at a time: `TableScratch::new` demands it of their author.
unsafe impl Send for ScratchTable {}
// SAFETY: it is only read; the functions are called through `TableScratch`, which is not `Sync`.
unsafe impl Sync for ScratchTable {}

/// The allocator described by a [`ScratchTable`].
pub struct TableScratch(ScratchTable);

impl TableScratch {
    /// Creates an allocator that calls the functions of `table`.
    ///
    /// # Safety
    /// The functions keep the promises of [`Scratch`], may be called from any thread, one at a time, and stay callable as
    /// long as the allocator lives.
    pub unsafe fn new(table: ScratchTable) -> Self {
        Self(table)
    }

    /// Creates an allocator from a copy of the table at `address`.
    ///
    /// # Errors
    /// If the address is null or not aligned, or a function is null.
    ///
    /// # Safety
    /// If the address is not null, four pointers can be read there; the rest as for [`new`](Self::new).
    pub unsafe fn from_address(address: usize) -> Result<Self, ScratchTableError> {
        if address == 0 || !address.is_multiple_of(align_of::<ScratchTable>()) {
            return Err(ScratchTableError::Address(address));
        }
        // Read as words first, since a Rust function pointer must not be null.
        let words = with_exposed_provenance::<[usize; 4]>(address);
        // SAFETY: four words can be read there (`scratch_from_table` demands it of the program).
        let [_, allocate, mark, rewind] = unsafe { words.read() };
        for (word, name) in [(allocate, "allocate"), (mark, "mark"), (rewind, "rewind")] {
            if word == 0 {
                return Err(ScratchTableError::Function(name));
            }
        }
        // SAFETY: it is a table (`scratch_from_table`, as above), and none of its functions is null.
        Ok(Self(unsafe { words.cast::<ScratchTable>().read() }))
    }
}

// SAFETY: the table's functions keep what `Scratch` demands (`TableScratch::new`); the alignment is checked besides.
unsafe impl Scratch for TableScratch {
    fn allocate(&self, size: usize, align: usize) -> Result<NonNull<u8>, AllocError> {
        // SAFETY: the promise given to `new`.
        let address = NonNull::new(unsafe { (self.0.allocate)(self.0.context, size.max(1), align) });
        address.filter(|address| address.as_ptr().addr() & (align - 1) == 0).ok_or_else(|| {
            let error = AllocError::new(size, Limit::Upstream);
            failure::remember(error);
            error
        })
    }

    fn mark(&self) -> u64 {
        // SAFETY: as above.
        unsafe { (self.0.mark)(self.0.context) }
    }

    unsafe fn rewind(&self, mark: u64) {
        // SAFETY: as above, and the mark is of this memory and what was allocated since is not used (`MarkBacking`).
        unsafe { (self.0.rewind)(self.0.context, mark) }
    }
}
