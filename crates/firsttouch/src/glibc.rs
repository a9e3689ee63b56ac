//! glibc's `malloc` beside a pool: what it would have done with the blocks that the pool serves.
//!
//! glibc maps large blocks one by one and returns them when they are freed, until the first such free: then it raises the
//! size from which on it does so to that of the block, and keeps twice as much at the top of its heap (`M_MMAP_THRESHOLD`
//! in mallopt(3)). So most of what programs allocate again and again it faults in once. This has two consequences:
//!
//! - Where a pool serves the large blocks, glibc sees none of them, and goes on mapping and returning what the pool leaves
//!   to it. [`follow`] raises its thresholds to where the pool's blocks would have put them. A program that joins tables
//!   with pandas took 59,000 page faults on the pool instead of 26,000 without; a C program with temporaries of 100 KiB
//!   1,361,000 instead of 1,249.
//! - What a pool recycles is no measure of what it gains. [`faulted`] counts the bytes that glibc would have taken fresh
//!   from the system, for reports.

use crate::os;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// glibc's initial threshold.
const INITIAL: usize = 128 << 10;
/// Its thresholds follow blocks up to this size (`DEFAULT_MMAP_THRESHOLD_MAX`, less the chunk's header and rounding).
const MOST: usize = (32 << 20) - (64 << 10);

/// The size that the thresholds were raised for; the largest where they are left alone.
static RAISED: AtomicUsize = AtomicUsize::new(MOST);
/// The largest size that was freed, of those that the thresholds follow.
static FREED: AtomicUsize = AtomicUsize::new(0);
/// The bytes that glibc would have taken fresh.
static FAULTED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The bytes that it would have free at the top of this thread's heap.
    static TOP: Cell<usize> = const { Cell::new(0) };
}

/// Begins to raise the thresholds. Not to be called where another `malloc` is in force, which would keep the blocks, nor
/// where glibc's fills them (`MALLOC_PERTURB_`).
pub fn begin_to_raise() {
    RAISED.store(INITIAL, Relaxed);
}

/// Records that a pool serves a block of so many bytes.
#[inline]
pub fn allocated(size: usize) {
    let taken = if size > FREED.load(Relaxed).max(INITIAL) {
        size // mapped
    } else {
        TOP.with(|top| {
            let free = top.get();
            top.set(free.saturating_sub(size));
            size.saturating_sub(free)
        })
    };
    if taken > 0 {
        FAULTED.fetch_add(taken as u64, Relaxed);
    }
}

/// Records that such a block was freed. The thresholds wait for that, so that a program whose blocks live on keeps no more
/// than plainly.
#[inline]
pub fn freed(size: usize) {
    let largest = FREED.load(Relaxed);
    if size > largest.max(INITIAL) {
        if size <= MOST {
            FREED.fetch_max(size, Relaxed);
        }
        return; // unmapped
    }
    let trim = if largest > INITIAL { 2 * largest } else { INITIAL };
    TOP.with(|top| top.set(if top.get() + size > trim { 0 } else { top.get() + size }));
}

/// Bytes that glibc would have taken fresh from the system for all blocks so far, as far as a simulation can tell that
/// takes all that is free for one block at the top of the heap.
pub fn faulted() -> u64 {
    FAULTED.load(Relaxed)
}

/// Raises glibc's thresholds to the largest block that was freed; to be called where allocating is no matter. `make_and_free` allocates and frees a
/// block of so many bytes by glibc's functions.
#[inline]
pub fn follow(make_and_free: impl FnOnce(usize)) {
    let size = FREED.load(Relaxed);
    if size > RAISED.load(Relaxed) {
        raise_to(size, make_and_free);
    }
}

/// In steps of a quarter at least: blocks that grow bit by bit would map and unmap one each time.
///
/// Nothing is done where address space is limited, as glibc may keep the block at the top of its heap, and where memory is
/// locked, as the system then fills it with pages.
#[cold]
fn raise_to(size: usize, make_and_free: impl FnOnce(usize)) {
    let raised = RAISED.load(Relaxed);
    let size = size.max(raised + raised / 4).min(MOST);
    RAISED.fetch_max(size, Relaxed);
    if os::address_space_limit().is_none() && os::data_limit().is_none() && os::locks_memory() != Some(true) {
        make_and_free(size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faulted_by(body: impl FnOnce()) -> u64 {
        let before = faulted();
        body();
        faulted() - before
    }

    fn turn(sizes: &[usize]) {
        sizes.iter().for_each(|&size| allocated(size));
        sizes.iter().for_each(|&size| freed(size));
    }

    /// One test: the thresholds are the process's.
    #[test]
    fn blocks_are_faulted_in_as_by_glibc() {
        const KIB: usize = 1 << 10;
        assert_eq!(faulted_by(|| (0..100).for_each(|_| turn(&[30 * KIB, 20 * KIB]))), 50 << 10);
        // Four blocks exceed what the top of the heap may keep, until a larger one was freed.
        let above = faulted_by(|| (0..100).for_each(|_| turn(&[100 * KIB; 4])));
        assert!(above >= (100 * 200) << 10, "{above}");
        turn(&[4 << 20]);
        let kept = faulted_by(|| (0..100).for_each(|_| turn(&[100 * KIB; 4])));
        assert!(kept <= 400 << 10, "{kept}");
        let again = faulted_by(|| (0..10).for_each(|_| turn(&[4 << 20])));
        assert!(again <= 4 << 20, "{again}");
        assert_eq!(faulted_by(|| (0..10).for_each(|_| turn(&[40 << 20]))), (10 * 40) << 20);
    }
}
