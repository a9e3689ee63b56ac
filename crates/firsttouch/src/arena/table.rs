//! A scratch allocator as a table of C functions, so that a library in any language can hand its own to others, by
//! address.

use super::scratch::Scratch;
use crate::allocator::{AllocError, Limit};
use crate::failure;
use std::ffi::c_void;
use std::fmt;
use std::ptr::{NonNull, with_exposed_provenance};

/// What a library hands over. [`Scratch`] says what the functions must keep; none may unwind.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScratchTable {
    /// The first argument of each.
    pub context: *mut c_void,
    /// `allocate(context, size, align)`; null where there is no memory.
    pub allocate: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut u8,
    /// `mark(context)`.
    pub mark: unsafe extern "C" fn(*mut c_void) -> u64,
    /// `rewind(context, mark)`.
    pub rewind: unsafe extern "C" fn(*mut c_void, u64),
}

// SAFETY: whoever makes a table promises that any thread may call its functions, one at a time.
unsafe impl Send for ScratchTable {}
// SAFETY: it is only read; calling is up to `Table`, which is not `Sync`.
unsafe impl Sync for ScratchTable {}

/// Why no table stands at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadTable {
    /// The address is null, or not a multiple of the size of a pointer.
    Address(usize),
    /// The function of that name is null.
    Function(&'static str),
}

impl fmt::Display for BadTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "no scratch table can stand at address {address:#x}"),
            Self::Function(name) => write!(f, "the scratch table's function {name} is null"),
        }
    }
}

impl std::error::Error for BadTable {}

/// The allocator that a table describes.
pub struct Table(ScratchTable);

impl Table {
    /// Calls the functions of `table`.
    ///
    /// # Safety
    /// They keep the promises of [`Scratch`], may be called from any thread, one at a time, and stay callable as long
    /// as this lives.
    pub unsafe fn new(table: ScratchTable) -> Self {
        Self(table)
    }

    /// The same for the table at `address`, which is read now.
    ///
    /// # Errors
    /// Where no table can stand there, or a function is null.
    ///
    /// # Safety
    /// If the address is not null, four pointers can be read there; the rest as for [`Table::new`].
    pub unsafe fn at(address: usize) -> Result<Self, BadTable> {
        if address == 0 || !address.is_multiple_of(align_of::<ScratchTable>()) {
            return Err(BadTable::Address(address));
        }
        // As words first: a function's address is never null in Rust.
        let words = with_exposed_provenance::<[usize; 4]>(address);
        // SAFETY: four words stand there (caller).
        let [_, allocate, mark, rewind] = unsafe { words.read() };
        for (word, name) in [(allocate, "allocate"), (mark, "mark"), (rewind, "rewind")] {
            if word == 0 {
                return Err(BadTable::Function(name));
            }
        }
        // SAFETY: it is a table (caller), and none of its functions is null.
        Ok(Self(unsafe { words.cast::<ScratchTable>().read() }))
    }
}

// SAFETY: whoever made it promised that the functions keep the promises; what they give is checked for its alignment.
unsafe impl Scratch for Table {
    fn allocate(&self, size: usize, align: usize) -> Result<NonNull<u8>, AllocError> {
        // SAFETY: the functions' promise.
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
        // SAFETY: as above, and the caller's promise.
        unsafe { (self.0.rewind)(self.0.context, mark) }
    }
}
