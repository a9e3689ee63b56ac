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
//!   from the system, for reports; a [`Simulation`] does it for recorded programs.

use crate::os;
use crate::report::Fresh;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// glibc's initial threshold.
const INITIAL: usize = 128 << 10;
/// Its thresholds follow blocks up to this size (`DEFAULT_MMAP_THRESHOLD_MAX`, less the chunk's header and rounding).
const MOST: usize = (32 << 20) - (64 << 10);

/// The size that the thresholds were raised for; the largest where they are left alone.
static RAISED: AtomicUsize = AtomicUsize::new(MOST);
/// The largest size that was freed, of those that the thresholds follow.
static FREED: AtomicUsize = AtomicUsize::new(0);
/// Of a block for which huge pages are asked plainly, as NumPy does from 4 MiB on, and of others: the bytes that glibc would
/// have taken fresh.
static FAULTED_HUGE: AtomicU64 = AtomicU64::new(0);
static FAULTED: AtomicU64 = AtomicU64::new(0);
/// From this size on NumPy asks for huge pages.
const NUMPYS_HUGE: usize = 4 << 20;

/// Smaller blocks are left out: what they cost is little, and glibc seldom returns it.
const LEAST: usize = 64 << 10;
/// What glibc takes more than it needs when its heap grows, and leaves at its top (`M_TOP_PAD`).
const PAD: usize = 128 << 10;
/// Heaps that are simulated, each for the threads of one arena, and blocks that are remembered of each.
const HEAPS: usize = 16;
const BLOCKS: usize = 32;

/// Whether glibc maps a block by itself, where the largest that was freed so far has so many bytes.
fn is_mapped(size: usize, freed: usize) -> bool {
    size > freed.max(INITIAL)
}

/// How much glibc then keeps at the top of a heap.
fn trim_threshold(freed: usize) -> usize {
    if freed > INITIAL { 2 * freed } else { INITIAL }
}

/// Whether the thresholds follow a mapped block that is freed.
fn raises(size: usize, freed: usize) -> bool {
    is_mapped(size, freed) && size <= MOST
}

/// On which pages the fresh bytes of a block are. For large arrays NumPy asks for huge pages, which the block covers whole
/// but for its ends; as it begins anywhere, these are one huge page in the mean.
pub fn pages(fresh: usize, size: usize, is_array: bool) -> Fresh {
    let ends = if is_array && size >= NUMPYS_HUGE { os::huge_page_size().unwrap_or(size).min(size) } else { size };
    let small = (fresh as f64 * (ends as f64 / size.max(1) as f64)) as u64;
    Fresh { small, huge: fresh as u64 - small }
}

/// Begins to raise the thresholds. Not to be called where another `malloc` is in force, which would keep the blocks, nor
/// where glibc's fills them (`MALLOC_PERTURB_`).
pub fn begin_to_raise() {
    RAISED.store(INITIAL, Relaxed);
}

/// A block in a simulated heap, or a gap between two.
#[derive(Clone, Copy)]
struct Chunk {
    /// Where the pool has put the block; zero for a gap.
    address: usize,
    size: usize,
}

/// The upper end of one of glibc's heaps. Below it, what is free stays, and is used by whatever fits best; what is free at
/// the top is returned once there is too much of it.
struct Heap {
    chunks: [Chunk; BLOCKS],
    count: usize,
    /// Free bytes above the last chunk, and how many of them were used before.
    top: usize,
    used: usize,
}

impl Heap {
    const EMPTY: Self = Self { chunks: [Chunk { address: 0, size: 0 }; BLOCKS], count: 0, top: 0, used: 0 };

    /// Places a block; returns the bytes of it that are fresh.
    fn place(&mut self, address: usize, size: usize) -> usize {
        let gaps = (0..self.count).filter(|&at| self.chunks[at].address == 0 && self.chunks[at].size >= size);
        if let Some(at) = gaps.min_by_key(|&at| self.chunks[at].size) {
            let rest = self.chunks[at].size - size;
            self.chunks[at] = Chunk { address, size };
            if rest > 0 && self.count < BLOCKS {
                self.chunks.copy_within(at + 1..self.count, at + 2);
                self.chunks[at + 1] = Chunk { address: 0, size: rest };
                self.count += 1;
            }
            return 0;
        }
        if self.count == BLOCKS {
            self.chunks.copy_within(1.., 0); // the lowest is forgotten, as if it lived on
            self.count -= 1;
        }
        self.chunks[self.count] = Chunk { address, size };
        self.count += 1;
        let fresh = size.saturating_sub(self.used);
        self.used = self.used.saturating_sub(size);
        self.top = if self.top >= size { self.top - size } else { PAD };
        fresh
    }

    /// Frees a block; false if it does not lie here. `trim` is what the top may have.
    fn free(&mut self, address: usize, trim: usize) -> bool {
        let Some(at) = self.chunks[..self.count].iter().position(|chunk| chunk.address == address) else {
            return false;
        };
        self.chunks[at].address = 0;
        for left in [at, at.saturating_sub(1)] {
            if left + 1 < self.count && self.chunks[left].address == 0 && self.chunks[left + 1].address == 0 {
                self.chunks[left].size += self.chunks[left + 1].size;
                self.chunks.copy_within(left + 2..self.count, left + 1);
                self.count -= 1;
            }
        }
        if self.chunks[self.count - 1].address == 0 {
            self.count -= 1;
            self.top += self.chunks[self.count].size;
            self.used += self.chunks[self.count].size;
        }
        if self.top >= trim {
            (self.top, self.used) = (PAD, self.used.min(PAD));
        }
        true
    }
}

/// Calls `body` with the heap of this thread's arena; nothing where another thread or an interrupted one uses it.
fn with_heap<T>(body: impl FnOnce(&mut Heap) -> T) -> Option<T> {
    static HEAPS_OF_ARENAS: [Mutex<Heap>; HEAPS] = [const { Mutex::new(Heap::EMPTY) }; HEAPS];
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static ARENA: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    let arena = ARENA.with(|arena| {
        if arena.get() == usize::MAX {
            arena.set(THREADS.fetch_add(1, Relaxed) % HEAPS);
        }
        arena.get()
    });
    HEAPS_OF_ARENAS[arena].try_lock().ok().map(|mut heap| body(&mut heap))
}

/// Records that a pool serves a block of so many bytes, for an array of NumPy's or anything else.
#[inline]
pub fn allocated(address: usize, size: usize, is_array: bool) {
    if size < LEAST || address == 0 {
        return;
    }
    let is_mapped = is_mapped(size, FREED.load(Relaxed));
    let fresh = if is_mapped { size } else { with_heap(|heap| heap.place(address, size)).unwrap_or(0) };
    if fresh > 0 {
        let fresh = pages(fresh, size, is_array);
        FAULTED.fetch_add(fresh.small, Relaxed);
        FAULTED_HUGE.fetch_add(fresh.huge, Relaxed);
    }
}

/// Records that such a block was freed. The thresholds wait for that, so that a program whose blocks live on keeps no more
/// than plainly.
#[inline]
pub fn freed(address: usize, size: usize) {
    if size < LEAST {
        return;
    }
    let largest = FREED.load(Relaxed);
    let was_there = with_heap(|heap| heap.free(address, trim_threshold(largest))).unwrap_or(false);
    if !was_there && raises(size, largest) {
        FREED.fetch_max(size, Relaxed);
    }
}

/// The same for one recorded program, whose blocks are told apart by any numbers but zero.
pub struct Simulation {
    heap: Heap,
    freed: usize,
}

impl Default for Simulation {
    fn default() -> Self {
        Self { heap: Heap::EMPTY, freed: 0 }
    }
}

impl Simulation {
    /// Allocates a block; returns the bytes of it that are fresh.
    pub fn allocated(&mut self, block: usize, size: usize) -> usize {
        match size {
            0..LEAST => 0,
            _ if is_mapped(size, self.freed) => size,
            _ => self.heap.place(block, size),
        }
    }

    /// Frees a block.
    pub fn freed(&mut self, block: usize, size: usize) {
        if size >= LEAST && !self.heap.free(block, trim_threshold(self.freed)) && raises(size, self.freed) {
            self.freed = size;
        }
    }
}

/// Bytes that glibc would have taken fresh from the system for all blocks so far, as far as this simulation tells.
pub extern "C" fn faulted() -> Fresh {
    Fresh { small: FAULTED.load(Relaxed), huge: FAULTED_HUGE.load(Relaxed) }
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

    const KIB: usize = 1 << 10;

    fn faulted_by(turns: usize, turn: impl Fn()) -> usize {
        let before = faulted().small;
        (0..turns).for_each(|_| turn());
        (faulted().small - before) as usize
    }

    fn temporaries(sizes: &[usize]) {
        let numbered = || (1..).zip(sizes).map(|(at, &size)| (at << 30, size));
        numbered().for_each(|(at, size)| allocated(at, size, false));
        numbered().for_each(|(at, size)| freed(at, size));
    }

    /// One test: the thresholds are the process's. The figures of glibc 2.36 for the same are beside it.
    #[test]
    fn blocks_are_faulted_in_as_by_glibc() {
        assert_eq!(faulted_by(9, || temporaries(&[30 * KIB, 20 * KIB])), 0);
        let trimmed = faulted_by(100, || temporaries(&[100 * KIB; 4]));
        assert!(trimmed >= 100 * 200 * KIB, "{trimmed}"); // 68 pages of 100 a turn
        temporaries(&[4096 * KIB]);
        let kept = faulted_by(100, || temporaries(&[100 * KIB; 4]));
        assert!(kept <= 400 * KIB, "{kept}"); // none
        let again = faulted_by(100, || temporaries(&[4096 * KIB]));
        assert!(again <= 4096 * KIB, "{again}"); // none
        let two = faulted_by(10, || temporaries(&[4096 * KIB; 2]));
        assert!(two >= 9 * 8192 * KIB, "{two}"); // all of them: twice the threshold is too much for the top
        assert_eq!(faulted_by(10, || temporaries(&[40960 * KIB])), 409_600 * KIB);
    }
}
