//! The pool of the preloaded library (`firsttouch run --all`), in a process that it serves: arrays and all other large
//! blocks recycle the same memory.
//!
//! For everybody else such blocks are the C library's: the preloaded `free`, `realloc` and `malloc_usable_size` know them.

use super::Malloc;
use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::gain::Fresh;
use crate::layout::SMALL_LIMIT;
use crate::os;
use crate::stats::Stats;
use std::ffi::CStr;
use std::ptr::NonNull;

/// The function that returns the [`Table`], or null where the library stands aside.
const SYMBOL: &CStr = c"firsttouch_preload_table_v1";

/// What the preloaded library offers to this one, which may have another version: it never changes, and another table gets
/// another symbol.
#[repr(C)]
pub struct Table {
    /// A block of so many bytes, aligned, zeroed if that is wanted; null where there is none.
    pub allocate: extern "C" fn(size: usize, align: usize, zeroed: bool) -> *mut u8,
    /// Whether a block, from wherever, was resized where it is.
    pub resize_in_place: unsafe extern "C" fn(block: *mut u8, size: usize) -> bool,
    /// Gives back what is idle.
    pub trim: extern "C" fn() -> usize,
    /// Writes the first `size` bytes of the statistics, which are only ever appended to.
    pub stats: unsafe extern "C" fn(to: *mut Stats, size: usize),
    /// What glibc would have taken fresh for all blocks.
    pub plainly: extern "C" fn() -> Fresh,
    /// Lets the caller report for both.
    pub leave_report: extern "C" fn(),
}

/// See the module.
#[derive(Clone, Copy)]
pub struct PreloadedPool(&'static Table);

impl PreloadedPool {
    /// The one that serves this process.
    pub fn find() -> Option<Self> {
        // SAFETY: the symbol is that of a function of this type, whose table stays: the library is never unloaded.
        unsafe {
            let function = os::symbol(SYMBOL)?;
            let table: extern "C" fn() -> *const Table = std::mem::transmute(function.as_ptr());
            table().as_ref().map(Self)
        }
    }

    /// What glibc would have taken fresh for all blocks: see [`crate::glibc`].
    pub fn plainly(self) -> Fresh {
        (self.0.plainly)()
    }

    /// Lets the caller report for both.
    pub fn leave_report(self) {
        (self.0.leave_report)();
    }
}

// SAFETY: the pool behind the table keeps the promises of `Allocator`, and for small blocks the C library does.
unsafe impl Allocator for PreloadedPool {
    fn describe(&self) -> Description {
        Description::of("pool")
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        let (size, zeroed) = (request.size(), request.is_zeroed());
        if size >= SMALL_LIMIT && request.check().is_ok() {
            let address = (self.0.allocate)(size, request.align(), zeroed);
            if let Some(address) = NonNull::new(address) {
                return Ok(Block { address, size, zeroed });
            }
        }
        Malloc.allocate(request)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { Malloc.deallocate(address) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: the caller's promise.
        unsafe { Malloc.usable_size(address) }
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { (self.0.resize_in_place)(address.as_ptr(), size) || Malloc.resize_in_place(address, size) }
    }

    fn trim(&self) -> usize {
        (self.0.trim)()
    }

    fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        // SAFETY: room for so many bytes, all of which are numbers.
        unsafe { (self.0.stats)(&raw mut stats, size_of::<Stats>()) };
        stats
    }

    fn calls_out(&self) -> bool {
        false
    }

    fn small_limit(&self) -> usize {
        SMALL_LIMIT
    }
}
