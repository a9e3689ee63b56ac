//! Small objects of a front while the C library has no memory.
//!
//! Stable Rust has no `Box` or `Arc` that can fail: if the allocator returns null the process aborts, even a program
//! that handles the failure. Allocations that depend on data use `try_reserve` in the core. The rest is small and
//! bounded for each call (an `Arc` around an allocator, a handler, the text of a message). The reserve serves these,
//! and a front refuses new calls ([`is_ready`]) while the reserve is half used and the C library has no memory.
//!
//! It is an area of 1 MiB, which costs address space but no memory until it is needed. A bitmap with a bit for each
//! granule of 64 bytes records what is in use, without locks: a fork in the middle of a request leaves none held in the
//! child. Frees pass the size (`Layout` has it), so no header is needed.

#![allow(unsafe_code)] // Safety: each block is freed by the allocator that its address tells.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize};

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
        take(layout)
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
        let block = take(layout);
        if !block.is_null() {
            // SAFETY: a new block of this size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block is freed by the one that allocated it.
        unsafe { if owns(block) { put(block, layout) } else { System.dealloc(block, layout) } }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !owns(block) && !is_injected() {
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
const A_CALL: usize = SIZE / 2;

/// Whether a call can begin: there is memory, or the reserve has enough left for a call.
#[inline]
pub fn is_ready() -> bool {
    used() <= SIZE - A_CALL || has_memory()
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

const GRANULE: usize = 64;
/// The number of granules that one word of the bitmap covers.
const A_WORD: usize = 64;
const WORDS: usize = 256;
/// 1 MiB.
pub const SIZE: usize = WORDS * A_WORD * GRANULE;
/// Larger requests depend on data, and are made in a way that can fail.
pub const LARGEST: usize = 128 << 10;
const PAGE: usize = 4096;

#[repr(align(4096))]
struct Area(UnsafeCell<[u8; SIZE]>);

// SAFETY: all access is through blocks that the bitmap assigned to one owner.
unsafe impl Sync for Area {}

static AREA: Area = Area(UnsafeCell::new([0; SIZE]));
static MAP: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
static USED: AtomicUsize = AtomicUsize::new(0);

fn start() -> *mut u8 {
    AREA.0.get().cast()
}

/// Bytes in use.
#[inline]
pub fn used() -> usize {
    USED.load(Relaxed) * GRANULE
}

/// Whether a block came from here.
#[inline]
pub fn owns(address: *const u8) -> bool {
    (address as usize).wrapping_sub(start() as usize) < SIZE
}

fn granules(size: usize) -> usize {
    size.div_ceil(GRANULE).max(1)
}

/// The lowest `count` bits, at most a word of them.
fn bits(count: usize) -> u64 {
    if count >= A_WORD { u64::MAX } else { (1 << count) - 1 }
}

/// Takes `count` granules, at most a word of them, from one word of the bitmap.
fn within(word: &AtomicU64, count: usize, step: usize) -> Option<usize> {
    let mut taken = word.load(Relaxed);
    loop {
        let at = (0..=A_WORD - count).step_by(step).find(|at| taken & (bits(count) << at) == 0)?;
        match word.compare_exchange_weak(taken, taken | (bits(count) << at), AcqRel, Relaxed) {
            Ok(_) => return Some(at),
            Err(now) => taken = now,
        }
    }
}

/// Takes whole words from `first` on, or none.
fn whole(first: usize, count: usize) -> bool {
    for at in first..first + count {
        if MAP[at].compare_exchange(0, u64::MAX, AcqRel, Relaxed).is_err() {
            MAP[first..at].iter().for_each(|word| word.store(0, Release));
            return false;
        }
    }
    true
}

fn find(count: usize, step: usize) -> Option<usize> {
    if count <= A_WORD {
        return (0..WORDS).find_map(|word| within(&MAP[word], count, step).map(|at| word * A_WORD + at));
    }
    let words = count.div_ceil(A_WORD);
    (0..=WORDS - words).find(|&first| whole(first, words)).map(|first| first * A_WORD)
}

/// Allocates a block; null if the area is full or the request is too large for it.
#[cold]
pub fn take(layout: Layout) -> *mut u8 {
    if layout.size() > LARGEST || layout.align() > PAGE {
        return null_mut();
    }
    let count = granules(layout.size());
    let Some(at) = find(count, layout.align().div_ceil(GRANULE)) else { return null_mut() };
    USED.fetch_add(count, Relaxed);
    // SAFETY: granule `at` lies in the area.
    unsafe { start().add(at * GRANULE) }
}

/// Frees a block.
///
/// # Safety
/// `take` returned it for this layout, and it is not in use.
#[cold]
pub unsafe fn put(address: *mut u8, layout: Layout) {
    let at = (address as usize - start() as usize) / GRANULE;
    let count = granules(layout.size());
    USED.fetch_sub(count, Relaxed);
    if count <= A_WORD {
        MAP[at / A_WORD].fetch_and(!(bits(count) << (at % A_WORD)), AcqRel);
    } else {
        let first = at / A_WORD;
        MAP[first..first + count.div_ceil(A_WORD)].iter().for_each(|word| {
            word.fetch_and(0, AcqRel);
        });
    }
}
