//! jemalloc, built from its C sources: the library's own heap, sizes, and rules about what it keeps. It handles forks
//! itself.

use super::listed::{Library, Listed};
use crate::allocator::{Description, Request};
use crate::layout::DEFAULT_ALIGN;
use crate::sync::first::First;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::Arc;
use tikv_jemalloc_sys as je;

/// See the module.
pub type Jemalloc = Listed<JemallocLibrary>;

/// The library's functions.
pub struct JemallocLibrary;

/// Does what jemalloc's own constructor does, if that was not called yet: it registers jemalloc's fork handlers.
pub(super) fn initialize() {
    // SAFETY: a question that allocates nothing.
    unsafe { je::nallocx(1, 0) };
}

/// mallctl(3), for commands without arguments.
fn command(name: &CStr) {
    // SAFETY: nothing is read or written.
    unsafe { je::mallctl(name.as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
}

impl Jemalloc {
    /// Returns the process's jemalloc.
    pub fn get() -> Arc<Self> {
        static ONE: First<Arc<Jemalloc>> = First::new();
        ONE.get_or_make(|| Self::on(JemallocLibrary)).clone()
    }
}

// SAFETY: jemalloc does.
unsafe impl Library for JemallocLibrary {
    const ALIGNS: bool = true;

    fn describe(&self) -> Description {
        Description::of("jemalloc")
    }

    fn take(&self, request: Request) -> (*mut u8, bool) {
        let zero = if request.is_zeroed() { je::MALLOCX_ZERO } else { 0 };
        // SAFETY: the size is not zero, and the alignment is a power of two.
        let raw = unsafe { je::mallocx(request.size(), je::MALLOCX_ALIGN(request.align()) | zero) };
        (raw.cast(), request.is_zeroed())
    }

    unsafe fn give_back(&self, raw: *mut u8, _given: usize) {
        // SAFETY: as demanded.
        unsafe { je::dallocx(raw.cast(), 0) }
    }

    unsafe fn usable(&self, raw: *mut u8, _given: usize) -> usize {
        // SAFETY: as demanded.
        unsafe { je::sallocx(raw.cast(), 0) }
    }

    unsafe fn resize(&self, raw: *mut u8, _given: usize, size: usize) -> bool {
        // SAFETY: as demanded.
        unsafe { je::xallocx(raw.cast(), size.max(1), 0, je::MALLOCX_ALIGN(DEFAULT_ALIGN)) >= size }
    }

    fn trim(&self) {
        command(c"thread.tcache.flush");
        command(c"arena.4096.purge"); // 4096 stands for all arenas
    }
}
