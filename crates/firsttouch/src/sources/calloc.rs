//! The C library's `calloc`: every block is zeroed, whether or not that was requested, and lazily if it is large.

use super::listed::{Library, Listed};
use crate::allocator::{Description, Request};
use crate::os;
use crate::sync::first::First;
use std::sync::Arc;

/// See the module.
pub type Calloc = Listed<LibcCalloc>;

/// calloc(3), which aligns to 16 bytes.
pub struct LibcCalloc;

impl Calloc {
    /// Creates an instance, which knows its own blocks.
    pub fn new() -> Arc<Self> {
        Self::on(LibcCalloc)
    }

    /// Returns the process's instance.
    pub fn get() -> Arc<Self> {
        static ONE: First<Arc<Calloc>> = First::new();
        ONE.get_or_make(Self::new).clone()
    }
}

// SAFETY: calloc and free do.
unsafe impl Library for LibcCalloc {
    const ALIGNS: bool = false;

    fn describe(&self) -> Description {
        Description::of("calloc")
    }

    fn take(&self, request: Request) -> (*mut u8, bool) {
        (os::c_calloc(request.size()).cast(), true)
    }

    unsafe fn give_back(&self, raw: *mut u8, _given: usize) {
        // SAFETY: as demanded.
        unsafe { os::c_free(raw.cast()) }
    }

    unsafe fn usable(&self, raw: *mut u8, _given: usize) -> usize {
        // SAFETY: as demanded.
        unsafe { os::c_usable(raw.cast()) }
    }
}
