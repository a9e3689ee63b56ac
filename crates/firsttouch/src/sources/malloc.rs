//! The C library's `malloc`, with our alignment.

use super::listed::{Library, Listed};
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
    notes: "",
    example: "\
>>> ft.malloc().empty(1000).ctypes.data % 64
0",
}];

/// The process's instance, with a list of its blocks.
pub fn make(_: &Arguments) -> Made {
    static ONE: First<Arc<dyn Allocator>> = First::new();
    Ok(ONE.get_or_make(|| Listed::on(LibcMalloc)).clone())
}

/// What is listed.
struct LibcMalloc;

// SAFETY: the C library's functions do.
unsafe impl Library for LibcMalloc {
    const ALIGNS: bool = true;

    fn describe(&self) -> Description {
        Malloc.describe()
    }

    fn take(&self, request: Request) -> (*mut u8, bool) {
        (os::c_aligned_malloc(request.size(), request.align()).cast(), false)
    }

    unsafe fn give_back(&self, raw: *mut u8, _given: usize) {
        // SAFETY: as demanded.
        unsafe { os::c_aligned_free(raw.cast()) }
    }

    unsafe fn usable(&self, raw: *mut u8, _given: usize) -> usize {
        // SAFETY: as demanded.
        unsafe { os::c_aligned_usable(raw.cast()) }
    }
}

/// The same without a list, for what knows its blocks itself. It has no state. Zeroed requests are cleared with `memset`; [`super::Calloc`] gets zeros from the system.
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
