//! The C library's `malloc`, with our alignment.

use super::refused;
use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::factory::Arguments;
use crate::failure;
use crate::os;
use crate::spec::{Made, Spec};
use crate::sync::first::First;
use std::ptr::NonNull;
use std::sync::Arc;

/// The declaration.
pub const SPECS: &[Spec] = &[Spec {
    name: "malloc",
    summary: "an allocator on the C library's ``malloc``, aligned to 64 bytes.",
    options: &[],
    positional: 0,
    notes: "For constructors and :func:`use`. :func:`install` refuses it, as its blocks cannot be recognized by address.",
    example: "\
>>> ft.malloc().empty(1000).ctypes.data % 64
0",
}];

/// It has no state, so there is only one.
pub fn make(_: &Arguments) -> Made {
    static ONE: First<Arc<dyn Allocator>> = First::new();
    Ok(ONE.get_or_make(|| Arc::new(Malloc)).clone())
}

/// See the module. Zeroed requests are cleared with `memset`; [`super::Calloc`] gets zeros from the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Malloc;

// SAFETY: the C library's functions keep the promises of `Allocator`.
unsafe impl Allocator for Malloc {
    fn describe(&self) -> Description {
        Description::of("malloc")
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        let (size, zeroed) = (request.size(), request.is_zeroed());
        let address = os::c_aligned_malloc(size, request.align()).cast();
        let address = NonNull::new(address).ok_or_else(|| refused(size))?;
        if zeroed {
            // SAFETY: the block was just allocated with this size.
            unsafe { address.write_bytes(0, size) };
        }
        Ok(Block { address, size, zeroed })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { os::c_aligned_free(address.as_ptr().cast()) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: the caller's promise.
        unsafe { os::c_aligned_usable(address.as_ptr().cast()) }
    }

    fn calls_out(&self) -> bool {
        false
    }
}
