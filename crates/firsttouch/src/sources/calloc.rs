//! The C library's `calloc`: every block is zeroed, whether or not that was requested, and lazily if it is large.

use super::usable::usable;
use crate::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use crate::failure;
use crate::sync::first::First;
use crate::vm::outside_blocks;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

/// See the module. The C library aligns to 16 bytes, so each request is enlarged by its alignment, and the word before
/// the block holds the address that `calloc` returned. Which blocks have such a word is told out of band (law 4).
///
/// A handler of NumPy's takes what is nobody else's for a block of its allocator. So where this allocator promises to
/// take back its own blocks, it also takes those that the C library itself handed out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calloc;

const WORD: usize = size_of::<*mut c_void>();

impl Calloc {
    /// The only instance that is needed: it has no state.
    pub fn shared() -> &'static Arc<Self> {
        static ONE: First<Arc<Calloc>> = First::new();
        ONE.get_or_make(|| Arc::new(Self))
    }

    /// Whether a live block begins at `address`.
    #[inline]
    pub(crate) fn made(address: NonNull<u8>) -> bool {
        outside_blocks::contains(address.as_ptr() as usize)
    }
}

/// The address by which the C library knows a block.
///
/// # Safety
/// `address` is a live block of [`Calloc`], if `made`, or of the C library.
unsafe fn beginning(address: NonNull<u8>, made: bool) -> *mut c_void {
    if !made {
        return address.as_ptr().cast();
    }
    // SAFETY: `allocate` wrote the word before the block.
    unsafe { address.as_ptr().cast::<*mut c_void>().sub(1).read() }
}

fn failed(request: Request) -> AllocError {
    let error = AllocError::new(request.size(), Limit::Upstream);
    failure::remember(error);
    error
}

// SAFETY: calloc and free keep the promises of `Allocator`, and the word before a block belongs to it.
unsafe impl Allocator for Calloc {
    fn describe(&self) -> Description {
        Description::of("calloc")
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        // SAFETY: the sum does not overflow: `check` left room for the alignment, which is at least 64.
        unsafe {
            let raw = libc::calloc(1, request.size() + request.align());
            if raw.is_null() {
                return Err(failed(request));
            }
            let skip = WORD + (raw.cast::<u8>().add(WORD)).align_offset(request.align());
            let address = raw.cast::<u8>().add(skip);
            if outside_blocks::enter(address as usize).is_err() {
                libc::free(raw);
                return Err(failed(request));
            }
            address.cast::<*mut c_void>().sub(1).write(raw);
            Ok(Block { address: NonNull::new_unchecked(address), size: request.size(), zeroed: true })
        }
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: `Allocator::deallocate` is called with a live block of this allocator that nobody uses any more, by
        // handlers, adaptors, buffers and fronts; a handler may pass the C library's, too.
        unsafe { libc::free(beginning(address, outside_blocks::leave(address.as_ptr() as usize))) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: `Allocator::usable_size` is called with a live block of this allocator, by handlers, adaptors,
        // buffers and fronts; the block ends where the C library's does.
        unsafe {
            let raw = beginning(address, Self::made(address));
            usable(raw) - (address.as_ptr() as usize - raw as usize)
        }
    }

    fn calls_out(&self) -> bool {
        false
    }
}
