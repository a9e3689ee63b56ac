//! A fixed area that serves small requests, without locks, while the C library has no memory.
//!
//! A bitmap with a bit for each granule of 64 bytes records what is in use. Frees pass the size (`Layout` has it), so
//! no header is needed, and a fork in the middle of a request leaves no lock held in the child. The area is not
//! written before it is needed, so it costs address space but no memory.

#![allow(unsafe_code)] // Safety: granules are handed out by compare-and-swap, so each has one owner.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Relaxed, Ordering::Release};

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
