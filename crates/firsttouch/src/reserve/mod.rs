//! Small objects of a front while the C library has no memory.
//!
//! Stable Rust has no `Box` or `Arc` that can fail: if the allocator returns null the process aborts, even a program
//! that handles the failure. Allocations that depend on data use `try_reserve` in the core. The rest is small and
//! bounded for each call (an `Arc` around an allocator, a handler, the text of a message). The reserve serves these,
//! and a front refuses new calls ([`is_ready`]) while the reserve is half used and the C library has no memory.

#![allow(unsafe_code)] // Safety: each block is freed by the allocator that its address tells.

mod area;

pub use area::{LARGEST, SIZE, used};

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The global allocator of a front: `System`, and the reserve if that fails.
pub struct WithReserve;

// SAFETY: `System` and the reserve keep the promises, and each block is freed by the one that allocated it.
unsafe impl GlobalAlloc for WithReserve {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_injected() {
            // SAFETY: `GlobalAlloc::alloc` is called with a layout that is not empty (Rust's collections, in the
            // fronts).
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
            // SAFETY: `GlobalAlloc::alloc_zeroed` is called with a layout that is not empty (Rust's collections).
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
        // SAFETY: the block is freed by the one that allocated it.
        unsafe { if area::owns(block) { area::put(block, layout) } else { System.dealloc(block, layout) } }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !area::owns(block) && !is_injected() {
            // SAFETY: `GlobalAlloc::realloc` is called with a live block and its own layout (Rust's collections).
            let moved = unsafe { System.realloc(block, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: `GlobalAlloc::realloc` is called with a live block and its own layout (Rust's collections); the old
        // block stays if there is no new one.
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

/// The most bytes that a call may need of the reserve.
const A_CALL: usize = area::SIZE / 2;

/// Whether a call can begin: there is memory, or the reserve has enough left for a call.
#[inline]
pub fn is_ready() -> bool {
    area::used() <= area::SIZE - A_CALL || has_memory()
}

/// Whether the C library has memory. Objects may stay in the reserve long after it has memory again.
#[cold]
fn has_memory() -> bool {
    let mut some: Vec<u8> = Vec::new();
    // More than the reserve would serve.
    some.try_reserve_exact(A_CALL).is_ok()
}

/// The number of requests until one fails; zero if none is to fail, negative if all are.
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

/// Lets the `n`-th request from now on fail and, with `onwards`, all later ones; zero ends that. Returns whether one
/// was still to fail.
pub fn inject(n: i64, onwards: bool) -> bool {
    ONWARDS.store(if onwards { -1 } else { 0 }, Relaxed);
    COUNTDOWN.swap(n, Relaxed) > 0
}
