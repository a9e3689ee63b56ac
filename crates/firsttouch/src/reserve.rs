//! Small objects of a front while the C library has no memory.
//!
//! Stable Rust has no `Box` or `Arc` that can fail: if the allocator returns null the process aborts, even a program
//! that handles the failure. Allocations that depend on data use `try_reserve` in the core. The rest is small and
//! bounded for each call (an `Arc` around an allocator, a handler, the text of a message). The reserve serves these,
//! and a front refuses new calls ([`is_ready`]) while the reserve is half used and the C library has no memory.
//!
//! It is an area of 1 MiB, which costs address space but no memory until it is needed. Blocks are cut off at its top; it starts
//! again when none is left. One word has the top and the number of blocks, so a fork in the middle of a request leaves no
//! lock held in the child.

#![allow(unsafe_code)] // Safety: each block is freed by the allocator that its address tells.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicI64, AtomicU64};

/// Bytes of the reserve.
pub const SIZE: usize = 1 << 20;
/// Larger requests depend on data, and are made in a way that can fail.
pub const LARGEST: usize = 128 << 10;
/// The alignment of the reserve, and the largest in it.
const PAGE: usize = 4096;
/// The most bytes that a call may need of the reserve.
const A_CALL: usize = SIZE / 2;

/// The global allocator of a front: `System`, and the reserve if that fails.
pub struct WithReserve;

// SAFETY: `System` and the reserve keep the promises, and each block is freed by the one that allocated it.
unsafe impl GlobalAlloc for WithReserve {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_injected() {
            // SAFETY: the layout is not empty, as the trait demands.
            let block = unsafe { System.alloc(layout) };
            if !block.is_null() {
                return block;
            }
        }
        allocate(layout)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block is freed by the one that allocated it.
        unsafe { if owns(block) { free(block, layout) } else { System.dealloc(block, layout) } }
    }
}

/// Whether a call can begin: there is memory, or the reserve has enough left for a call.
#[inline]
pub fn is_ready() -> bool {
    used() <= SIZE - A_CALL || has_memory()
}

/// Whether the C library has memory. Objects may stay in the reserve long after it has memory again.
#[cold]
fn has_memory() -> bool {
    let mut some: Vec<u8> = Vec::new();
    some.try_reserve_exact(A_CALL).is_ok() // more than the reserve would serve
}

#[repr(align(4096))]
struct Area(UnsafeCell<[u8; SIZE]>);

// SAFETY: all access is through blocks, each of which has one owner.
unsafe impl Sync for Area {}

static AREA: Area = Area(UnsafeCell::new([0; SIZE]));
/// The top in the lower half, and the number of live blocks in the upper one.
static STATE: AtomicU64 = AtomicU64::new(0);

fn start() -> *mut u8 {
    AREA.0.get().cast()
}

fn top(state: u64) -> usize {
    state as u32 as usize
}

/// Bytes up to the top.
#[inline]
pub fn used() -> usize {
    top(STATE.load(Relaxed))
}

/// Whether a block came from here.
#[inline]
pub fn owns(address: *const u8) -> bool {
    (address as usize).wrapping_sub(start() as usize) < SIZE
}

/// Allocates a block; null if the area is full or the request is too large for it.
#[cold]
pub fn allocate(layout: Layout) -> *mut u8 {
    if layout.size() > LARGEST || layout.align() > PAGE {
        return null_mut();
    }
    let at = |state| top(state).next_multiple_of(layout.align());
    let taken = STATE.fetch_update(AcqRel, Relaxed, |state| {
        let end = at(state) + layout.size().max(1);
        (end <= SIZE).then_some(((state >> 32) + 1) << 32 | end as u64)
    });
    // SAFETY: the block lies in the area.
    taken.map_or(null_mut(), |before| unsafe { start().add(at(before)) })
}

/// Frees a block.
///
/// # Safety
/// `allocate` returned it for this layout, and it is not in use.
#[cold]
pub unsafe fn free(address: *mut u8, layout: Layout) {
    let at = address as usize - start() as usize;
    let _ = STATE.fetch_update(AcqRel, Relaxed, |state| {
        let blocks = (state >> 32) - 1;
        let is_last = top(state) == at + layout.size().max(1);
        let top = if is_last { at } else { top(state) };
        Some(if blocks == 0 { 0 } else { blocks << 32 | top as u64 })
    });
}

// ---- Failures that tests ask for

/// The number of requests until one fails; zero if none is to fail, negative if all are.
static COUNTDOWN: AtomicI64 = AtomicI64::new(0);
/// What that becomes after the failure.
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
