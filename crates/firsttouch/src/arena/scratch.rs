//! What a scratch allocator of one's own must do.

use super::error::Error;
use super::whole::Arena;
use crate::allocator::{AllocError, Limit};
use crate::layout::MAX_ALIGN;
use std::ptr::NonNull;

/// Memory that goes back to a mark. One thread at a time uses it, not always the same one.
///
/// # Safety
/// What is allocated has the size and alignment asked for, overlaps nothing that was allocated since an earlier mark or
/// before, and stays valid until a rewind to a mark that was made before it, or until the implementation is dropped.
/// Nothing panics.
pub unsafe trait Scratch: Send {
    /// `size` bytes of any content at a multiple of `align`, a power of two up to 1 GiB. Zero bytes are served as one.
    ///
    /// # Errors
    /// What was asked and which limit spoke.
    fn allocate(&self, size: usize, align: usize) -> Result<NonNull<u8>, AllocError>;

    /// How far the memory is used, as a number that [`Scratch::rewind`] knows.
    fn mark(&self) -> u64;

    /// Goes back to a mark; those that were made later mean nothing any more, and neither does this one.
    ///
    /// # Safety
    /// The mark was made here, and neither it nor an earlier one was rewound to since; nothing uses what was allocated
    /// since.
    unsafe fn rewind(&self, mark: u64);
}

/// What stands for a mark where there was no memory to note it: a rewind to it frees nothing.
const NO_MARK: u64 = u64::MAX;

// SAFETY: blocks are cut off a pointer that only a rewind moves back, to a position that a mark noted.
unsafe impl Scratch for Arena<'_> {
    #[inline]
    fn allocate(&self, size: usize, align: usize) -> Result<NonNull<u8>, AllocError> {
        let size = size.max(1);
        if !align.is_power_of_two() || align > MAX_ALIGN {
            return Err(AllocError::new(size, Limit::Size));
        }
        if let Some(address) = self.bump.bump(size, align) {
            return Ok(address);
        }
        self.bump.grow(size, align, false).map(|block| block.address).map_err(|error| match error {
            Error::Memory(error) => error,
            Error::Layout(_) => AllocError::new(size, Limit::Size), // the alignment was checked
        })
    }

    fn mark(&self) -> u64 {
        let mut numbered = self.numbered.borrow_mut();
        if numbered.try_reserve(1).is_err() {
            return NO_MARK;
        }
        numbered.push(Arena::mark(self));
        numbered.len() as u64 - 1
    }

    unsafe fn rewind(&self, mark: u64) {
        let mut numbered = self.numbered.borrow_mut();
        if let Ok(index) = usize::try_from(mark)
            && index < numbered.len()
        {
            // SAFETY: no scope is open, as it would borrow the arena; the rest is the caller's promise.
            let gone = unsafe { self.go_back(&numbered[index]) };
            debug_assert_eq!(gone, Ok(()), "marks are rewound to in their order");
            numbered.truncate(index);
        }
    }
}
