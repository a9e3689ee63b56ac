//! glibc's `malloc` beside a pool: it is made to keep what it would keep without the pool, and what it would have taken fresh
//! from the system for the pool's blocks is counted.
//!
//! glibc takes a block from what is free in its heap, else maps it by itself if it is larger than a threshold, and unmaps it when
//! it is freed. The first such free raises the threshold to the size of that block, and twice as much may be free at the top of
//! the heap before that is returned (`M_MMAP_THRESHOLD` in mallopt(3)). This has two consequences:
//!
//! - Where a pool serves the large blocks, glibc sees none of them, and goes on mapping and returning what the pool leaves
//!   to it. [`follow`] raises its threshold to where the pool's blocks would have put it; docs/notes/104 has what that saves.
//! - What a pool recycles is no measure of what it gains, as glibc keeps some of it, too. [`plainly`] says what glibc would have
//!   taken in any case, and what at most.
//!
//! The fronts tell of each block that they [`allocated`], [`freed`] or [`resized`]. The model of the heap is three numbers: the bytes
//! of live blocks (`LIVE`), its size (`HEAP`), and the threshold. All that is free is taken to lie at the top, which is
//! returned, so that the heap grows no more than is counted.

use crate::gain::FreshBytes;
use firsttouch::Request;
use firsttouch::adaptors::written_bytes;
use firsttouch::layout::SMALL_LIMIT;
use firsttouch::os::{self, MemoryBound};
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering::Relaxed};

// ---- The threshold

/// The threshold until it is raised.
const THRESHOLD_MIN: usize = 128 << 10;
/// It follows blocks up to this size (`DEFAULT_MMAP_THRESHOLD_MAX`, less the chunk's header and rounding).
const THRESHOLD_MAX: usize = (32 << 20) - (64 << 10);

/// What the threshold would be without the pool: the largest size that was freed, of those that it follows.
static THRESHOLD: AtomicUsize = AtomicUsize::new(THRESHOLD_MIN);
/// What it was raised to; the largest where it is left alone.
static RAISED: AtomicUsize = AtomicUsize::new(THRESHOLD_MAX);

/// Begins to raise the threshold, from where it is now, to a page: Python's imports free some hundred KiB, without which
/// temporaries of 80 kB would seem to be returned and faulted in again for ever. `is_mapped` tells whether glibc maps a block
/// of a size by itself. Not to be called where another `malloc` is in force, which would keep the blocks.
pub fn begin_to_raise(is_mapped: impl Fn(usize) -> bool) {
    let (mut now, mut step) = (THRESHOLD_MIN, THRESHOLD_MIN);
    while now < THRESHOLD_MAX && step >= os::page_size() {
        (now, step) = if is_mapped(now + step) { (now, step / 2) } else { (now + step, 2 * step) };
    }
    THRESHOLD.fetch_max(now.min(THRESHOLD_MAX), Relaxed);
    RAISED.store(now.min(THRESHOLD_MAX), Relaxed);
}

/// Raises the threshold to what it would be without the pool. To be called where a call of `malloc` does no harm:
/// `make_and_free` allocates and frees a block of a given size by glibc's functions.
#[inline]
pub fn follow(make_and_free: impl FnOnce(usize)) {
    let size = THRESHOLD.load(Relaxed);
    if size > RAISED.load(Relaxed) {
        raise_to(size, make_and_free);
    }
}

/// In steps of a quarter at least: blocks that grow bit by bit would map and unmap one each time.
///
/// Nothing is done where address space is limited, as glibc may keep the block at the top of its heap.
#[cold]
fn raise_to(size: usize, make_and_free: impl FnOnce(usize)) {
    let raised = RAISED.load(Relaxed);
    let size = size.max(raised + raised / 4).min(THRESHOLD_MAX);
    RAISED.fetch_max(size, Relaxed);
    if os::memory_bounds().iter().flatten().all(MemoryBound::is_shared) {
        make_and_free(size);
    }
}

// ---- What glibc would have taken

/// What glibc would have taken fresh from the system for the blocks of a process that a pool serves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plainly {
    /// For blocks that it maps by themselves whatever was freed before, on memory that earlier blocks had written to.
    pub mapped_again: FreshBytes,
    /// For the rest of such blocks: pages to which no earlier block had written. A pool took them fresh as well, or the program
    /// does not write to them.
    pub mapped_first: FreshBytes,
    /// By how much its heap grows at most: if all that is free lies at the top, and is returned as soon as it may be; and blocks
    /// beyond the threshold, which it maps by themselves unless there is room for them.
    pub heap: FreshBytes,
    /// Bytes that it clears in its heap at most.
    pub cleared: u64,
}

impl Plainly {
    /// All of it.
    pub fn all(self) -> FreshBytes {
        self.mapped_again + self.mapped_first + self.heap
    }

    /// What was counted since.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            mapped_again: self.mapped_again.since(before.mapped_again),
            mapped_first: self.mapped_first.since(before.mapped_first),
            heap: self.heap.since(before.heap),
            cleared: self.cleared.saturating_sub(before.cleared),
        }
    }

    /// These bytes as if nobody had asked for huge pages.
    #[must_use]
    pub fn on_base_pages(self) -> Self {
        let on_base = |fresh: FreshBytes| FreshBytes { base: fresh.bytes(), huge: 0 };
        let [mapped_again, mapped_first, heap] = [self.mapped_again, self.mapped_first, self.heap].map(on_base);
        Self { mapped_again, mapped_first, heap, ..self }
    }
}

/// The sums of [`Plainly`], on base pages and on huge ones.
static MAPPED_AGAIN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static MAPPED_FIRST: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static HEAP_GREW: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static CLEARED: AtomicU64 = AtomicU64::new(0);

/// What glibc would have taken for all blocks so far.
pub fn plainly() -> Plainly {
    let sum = |[base, huge]: &[AtomicU64; 2]| FreshBytes { base: base.load(Relaxed), huge: huge.load(Relaxed) };
    let [mapped_again, mapped_first, heap] = [&MAPPED_AGAIN, &MAPPED_FIRST, &HEAP_GREW].map(sum);
    Plainly { mapped_again, mapped_first, heap, cleared: CLEARED.load(Relaxed) }
}

fn count([base, huge]: &[AtomicU64; 2], fresh: usize, size: usize, is_array: bool) {
    if fresh > 0 {
        let fresh = FreshBytes::of(fresh, size, is_array);
        base.fetch_add(fresh.base, Relaxed);
        huge.fetch_add(fresh.huge, Relaxed);
    }
}

/// Sizes of blocks that are counted in the heap. Those beyond it glibc maps by themselves whatever was freed.
const IN_HEAP: RangeInclusive<usize> = SMALL_LIMIT..=THRESHOLD_MAX;

/// Records what a pool serves at an address, for an array of NumPy's or anything else.
#[inline]
pub fn allocated(address: usize, request: Request, is_array: bool) {
    let size = request.size();
    if IN_HEAP.contains(&size) {
        let (grown, is_mapped) = (change_in_steps(size as isize), size > THRESHOLD.load(Relaxed));
        let fresh = if is_mapped { size } else { grown };
        count(&HEAP_GREW, fresh, size, is_array);
        if request.is_zeroed() && size >= THRESHOLD_MIN && fresh < size {
            CLEARED.fetch_add((size - fresh) as u64, Relaxed);
        }
    } else if size > THRESHOLD_MAX {
        let again = written_bytes(address, size);
        count(&MAPPED_AGAIN, again, size, is_array);
        count(&MAPPED_FIRST, size - again, size, is_array);
    }
}

/// Records that such a block was freed. The threshold waits for that, so that a program whose blocks live on keeps no more
/// than plainly.
#[inline]
pub fn freed(size: usize) {
    if IN_HEAP.contains(&size) {
        change_in_steps(-(size as isize));
        if size > THRESHOLD.load(Relaxed) {
            THRESHOLD.fetch_max(size, Relaxed);
            HEAP.store(LIVE.load(Relaxed), Relaxed); // it was mapped by itself, and leaves no room
        }
    }
}

/// Records that such a block was resized: it takes its pages along.
pub fn resized(old: usize, new: usize) {
    let in_heap = |size| if IN_HEAP.contains(&size) { size as isize } else { 0 };
    count(&HEAP_GREW, change_in_steps(in_heap(new) - in_heap(old)), new, false);
}

// ---- The model of the heap

/// What is free at the top of the heap beside what was asked for, when it grows and when it is returned (`M_TOP_PAD`).
const TOP_PAD: isize = 128 << 10;

/// Bytes of live blocks.
static LIVE: AtomicIsize = AtomicIsize::new(0);
/// Bytes of the heap: these, and what is free at its top.
static HEAP: AtomicIsize = AtomicIsize::new(0);

/// Changes the bytes of live blocks; returns by what the heap grows.
fn change(by: isize) -> usize {
    let live = LIVE.fetch_add(by, Relaxed) + by;
    let grown = live - HEAP.fetch_max(live, Relaxed);
    if TOP_PAD - grown >= 2 * THRESHOLD.load(Relaxed) as isize {
        HEAP.store(live + TOP_PAD, Relaxed);
    }
    grown.max(0) as usize
}

/// Changes of smaller blocks are made once they add up to this.
const STEP: isize = THRESHOLD_MIN as isize;
thread_local! {
    /// Those of this thread that are not made yet.
    static WAITING: Cell<isize> = const { Cell::new(0) };
}

/// [`change`], but collects small changes in the thread first.
#[inline]
fn change_in_steps(by: isize) -> usize {
    if by.abs() >= STEP {
        return change(by);
    }
    let waiting = WAITING.get() + by;
    let is_little = waiting.abs() < STEP;
    WAITING.set(if is_little { waiting } else { 0 });
    if is_little { 0 } else { change(waiting) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;

    /// The bytes that a number of turns take for blocks that are mapped on memory that was used, for others, and for the heap.
    fn taken_by(turns: usize, turn: impl Fn()) -> [usize; 3] {
        let before = plainly();
        (0..turns).for_each(|_| turn());
        let Plainly { mapped_again, mapped_first, heap, .. } = plainly().since(before);
        [mapped_again, mapped_first, heap].map(|fresh| fresh.bytes() as usize)
    }

    fn temporaries(sizes: &[usize]) {
        sizes.iter().for_each(|&size| allocated(1, Request::bytes(size), false));
        sizes.iter().for_each(|&size| freed(size));
    }

    /// One test: the counts are the process's. The figures of glibc 2.36 for the same are beside it.
    #[test]
    fn what_glibc_takes_is_no_more_than_is_counted() {
        let trimmed = taken_by(100, || temporaries(&[100 * KIB; 4]));
        assert!(trimmed[..2] == [0; 2] && trimmed[2] >= 100 * 272 * KIB, "{trimmed:?}"); // 68 pages of 100 a turn
        let padded = taken_by(100, || temporaries(&[100 * KIB; 2]));
        assert!((99 * 72 * KIB..=100 * 72 * KIB).contains(&padded[2]), "{padded:?}"); // 18 of 50
        let small = taken_by(100, || temporaries(&[30 * KIB, 20 * KIB]));
        assert!(small[2] <= 400 * KIB, "{small:?}"); // none
        temporaries(&[4096 * KIB]);
        let kept = taken_by(100, || temporaries(&[100 * KIB; 4]));
        assert!((300 * KIB..=400 * KIB).contains(&kept[2]), "{kept:?}"); // once: what was mapped leaves no room
        let again = taken_by(100, || temporaries(&[4096 * KIB]));
        assert!(again[2] <= 4096 * KIB, "{again:?}"); // none
        let two = taken_by(10, || temporaries(&[4096 * KIB; 2]));
        assert!(two[2] >= 9 * 8064 * KIB, "{two:?}"); // as many: twice the threshold is too much for the top
        let less = taken_by(10, || temporaries(&[4000 * KIB; 2]));
        assert!(less[2] <= 8000 * KIB, "{less:?}"); // once
        let bordered = taken_by(10, || temporaries(&[4096 * KIB, 4080 * KIB]));
        assert!(bordered[2] >= 9 * 8048 * KIB, "{bordered:?}"); // as many: there is a little beside them
        assert_eq!(taken_by(10, || temporaries(&[40960 * KIB])), [0, 409_600 * KIB, 0]); // all of them
        let mut block = vec![1_u8; 40960 * KIB];
        let reused = taken_by(10, || allocated(block.as_ptr() as usize, Request::bytes(40960 * KIB), false));
        assert!(reused[0] >= 360_000 * KIB && reused[0] + reused[1] == 409_600 * KIB, "{reused:?}");
        block[0] = 2;
        let grown = taken_by(10, || (1..9).for_each(|times| resized((times - 1) * 4096 * KIB, times * 4096 * KIB)));
        assert!(grown[2] <= 320 << 20, "{grown:?}"); // realloc at the top, or mremap
        (0..10).for_each(|_| freed(8 * 4096 * KIB - 4096));
        let lasting = taken_by(4000, || allocated(1, Request::bytes(20 * KIB), false)); // 20,000 pages
        assert!((70_000 * KIB..=80_000 * KIB).contains(&lasting[2]), "{lasting:?}");
        let thousands = taken_by(20, || temporaries(&[20 * KIB; 1000]));
        assert!(thousands[2] >= 19 * 10_000 * KIB, "{thousands:?}"); // most of them
        let last = Cell::new(5000 * KIB);
        let appended = taken_by(100, || {
            last.set(last.get() + 16 * KIB);
            allocated(1, Request::zeroed(last.get()), true);
            freed(last.get() - 16 * KIB);
        });
        assert!(appended[0] + appended[2] >= 100 * 5000 * KIB, "{appended:?}"); // two thirds of them
        assert_eq!(plainly().cleared, 0);
        taken_by(10, || {
            allocated(1, Request::zeroed(4096 * KIB), true);
            freed(4096 * KIB);
        });
        assert!(plainly().cleared >= 9 * 4096 * KIB as u64); // all of them
    }
}
