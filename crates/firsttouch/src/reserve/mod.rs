//! Small objects of a front, where the C library has no memory.
//!
//! Stable Rust has no `Box` or `Arc` that can fail: where the allocator returns null the process aborts, and so would a
//! program that handles the failure. What depends on data the core asks for with `try_reserve`. What is left is small
//! and bounded for each call (an `Arc` around an allocator, a handler, the text of a message). The reserve serves that,
//! and a front refuses calls at the door ([`is_ready`]) while the reserve is half used and the C library has nothing.

#![allow(unsafe_code)] // Safety: each block goes back to who gave it, told by its address.

mod area;

pub use area::{LARGEST, SIZE, used};

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The global allocator of a front: `System`, and the reserve where that fails.
pub struct WithReserve;

// SAFETY: `System` and the reserve keep the promises, and blocks of one never reach the other.
unsafe impl GlobalAlloc for WithReserve {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_injected() {
            // SAFETY: the caller's promise.
            let block = unsafe { System.alloc(layout) };
            if !block.is_null() {
                return block;
            }
        }
        area::take(layout)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_injected() {
            // SAFETY: the caller's promise.
            let block = unsafe { System.alloc_zeroed(layout) };
            if !block.is_null() {
                return block;
            }
        }
        let block = area::take(layout);
        if !block.is_null() {
            // SAFETY: a new block of this size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block goes to who gave it.
        unsafe { if area::owns(block) { area::put(block, layout) } else { System.dealloc(block, layout) } }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !area::owns(block) && !is_injected() {
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
const A_CALL: usize = area::SIZE / 2;

/// Whether a call can begin: there is memory, or enough of the reserve is left for what it needs.
#[inline]
pub fn is_ready() -> bool {
    area::used() <= area::SIZE - A_CALL || has_memory()
}

/// Whether the C library has memory: objects may live in the reserve for long after it came back.
#[cold]
pub fn has_memory() -> bool {
    let mut some: Vec<u8> = Vec::new();
    // Above what the reserve would serve.
    some.try_reserve_exact(A_CALL).is_ok()
}

/// Requests until one fails; zero where none is to fail, negative where all do.
static COUNTDOWN: AtomicI64 = AtomicI64::new(0);
static ONWARDS: AtomicI64 = AtomicI64::new(0);

/// Whether a request is to fail now.
#[inline]
fn is_injected() -> bool {
    COUNTDOWN.load(Relaxed) != 0 && count_down()
}

#[cold]
fn count_down() -> bool {
    let before = COUNTDOWN.load(Relaxed);
    if before < 0 {
        return true;
    }
    let then = if before == 1 { ONWARDS.load(Relaxed) } else { before - 1 };
    COUNTDOWN.store(then, Relaxed);
    before == 1
}

/// From now on the `n`-th request fails, and with `onwards` all that follow; zero ends that. Whether one was still to
/// fail.
pub fn inject(n: i64, onwards: bool) -> bool {
    ONWARDS.store(if onwards { -1 } else { 0 }, Relaxed);
    COUNTDOWN.swap(n, Relaxed) > 0
}
