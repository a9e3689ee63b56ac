//! The native module's own memory: the C library's, and the reserve's where that fails.
//!
//! Stable Rust has no `Box` or `Arc` that can fail: where the allocator returns null the process aborts, and so would a
//! program that handles `MemoryError`. What depends on data the core asks for with `try_reserve`. What is left is small
//! and bounded for each call (an `Arc` around an allocator, a handler, the text of a message, an exception's state). The
//! reserve serves that, and calls are refused at the door (`check`) while the reserve is half used and the C library has
//! nothing.

#![allow(unsafe_code)] // Safety: each block goes back to who gave it, told by its address.

use super::{inject, reserve};
use std::alloc::{GlobalAlloc, Layout, System};

struct WithReserve;

#[global_allocator]
static GLOBAL: WithReserve = WithReserve;

// SAFETY: `System` and the reserve keep the promises, and blocks of one never reach the other.
unsafe impl GlobalAlloc for WithReserve {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !inject::fails() {
            // SAFETY: the caller's promise.
            let block = unsafe { System.alloc(layout) };
            if !block.is_null() {
                return block;
            }
        }
        reserve::take(layout)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !inject::fails() {
            // SAFETY: the caller's promise.
            let block = unsafe { System.alloc_zeroed(layout) };
            if !block.is_null() {
                return block;
            }
        }
        let block = reserve::take(layout);
        if !block.is_null() {
            // SAFETY: a new block of this size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block goes to who gave it.
        unsafe { if reserve::owns(block) { reserve::put(block, layout) } else { System.dealloc(block, layout) } }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !reserve::owns(block) && !inject::fails() {
            // SAFETY: the caller's promise.
            let moved = unsafe { System.realloc(block, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller's promise; the old block stays where there is no new one.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(block, size.min(layout.size()));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

/// Bytes that a call may need of the reserve at the most.
const A_CALL: usize = reserve::SIZE / 2;

/// Whether a call can begin: there is memory, or enough of the reserve is left for what it needs.
#[inline]
pub fn is_ready() -> bool {
    reserve::used() <= reserve::SIZE - A_CALL || there_is_memory()
}

/// Objects may live in the reserve for long after memory came back.
#[cold]
fn there_is_memory() -> bool {
    let mut some: Vec<u8> = Vec::new();
    // Above what the reserve would serve.
    some.try_reserve_exact(A_CALL).is_ok()
}
