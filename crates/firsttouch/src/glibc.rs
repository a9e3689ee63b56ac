//! glibc's `malloc` beside a pool: what it would have done with the blocks that the pool serves.
//!
//! glibc takes a block from what is free in its heap, else maps it by itself if it is large, and unmaps it when it is freed.
//! The first such free raises the size from which on it does so to that of the block, and twice as much may be free at the
//! top of the heap before that is returned (`M_MMAP_THRESHOLD` in mallopt(3)). So most of what programs allocate again and
//! again it faults in once. This has two consequences:
//!
//! - Where a pool serves the large blocks, glibc sees none of them, and goes on mapping and returning what the pool leaves
//!   to it. [`follow`] raises its thresholds to where the pool's blocks would have put them. A program that joins tables
//!   with pandas took 59,000 page faults on the pool instead of 26,000 without; a C program with temporaries of 100 KiB
//!   1,361,000 instead of 1,249.
//! - What a pool recycles is no measure of what it gains. A [`Heap`] tells the bytes that glibc would have taken fresh from
//!   the system: [`faulted`] those of this process, for reports, and [`crate::gain`] those of traced programs.

use crate::adaptors::SMALL_LIMIT;
use crate::gain::Fresh;
use crate::os;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The size from which on glibc maps blocks by themselves, until it is raised.
pub const INITIAL: usize = 128 << 10;
/// Its thresholds follow blocks up to this size (`DEFAULT_MMAP_THRESHOLD_MAX`, less the chunk's header and rounding).
const MOST: usize = (32 << 20) - (64 << 10);

/// The size that the thresholds were raised for; the largest where they are left alone.
static RAISED: AtomicUsize = AtomicUsize::new(MOST);
/// The largest size that was freed, of those that the thresholds follow.
static FREED: AtomicUsize = AtomicUsize::new(INITIAL);
/// On base pages, and on huge ones: the bytes that glibc would have taken fresh.
static FAULTED: AtomicU64 = AtomicU64::new(0);
static FAULTED_HUGE: AtomicU64 = AtomicU64::new(0);

/// Smaller blocks are left out: they come from no pool.
pub const LEAST: usize = SMALL_LIMIT;
/// What glibc takes more than it needs when its heap grows, and leaves at its top (`M_TOP_PAD`).
const PAD: usize = 128 << 10;
/// What a block takes beside its bytes.
const HEADER: usize = 16;
/// Heaps that are simulated, each for the threads of one arena, and blocks and gaps that are remembered of each. With 32,
/// a program that reads lists of arrays was told 34,657 page faults, where it takes 18,478.
const HEAPS: usize = 16;
const CHUNKS: usize = 128;

/// The number of a block that is being copied to another place.
const MOVING: usize = usize::MAX;

/// A block in a simulated heap, or a gap between two.
#[derive(Clone, Copy)]
struct Chunk {
    /// A number of the block, such as its address in the pool; zero for a gap.
    block: usize,
    size: usize,
}

/// The upper end of one of glibc's heaps. Below it, what is free stays, and is used by whatever fits best; what is free at
/// the top is returned once there is too much of it.
pub struct Heap {
    chunks: [Chunk; CHUNKS],
    count: usize,
    /// Free bytes above the last chunk, and how many of them were used before.
    top: usize,
    used: usize,
}

impl Heap {
    const EMPTY: Self = Self { chunks: [Chunk { block: 0, size: 0 }; CHUNKS], count: 0, top: 0, used: 0 };

    /// Allocates a block, where the largest that was freed so far has `freed` bytes; returns the bytes of it that are fresh.
    pub fn allocate(&mut self, block: usize, size: usize, freed: usize) -> usize {
        let taken = size.saturating_add(HEADER);
        let chunks = &mut self.chunks;
        let gaps = (0..self.count).filter(|&at| chunks[at].block == 0 && chunks[at].size >= taken);
        // Of equal gaps glibc takes now the one that was freed first and now the one freed last. The highest comes nearest:
        // `np.roll` of 2, 8 and 16 MB takes 49,563, 12,950 and 8,011 faults, and is told 40,256, 12,794 and 7,760. By the
        // lowest it was told 3,418, 3,604 and 3,629.
        if let Some(at) = gaps.rev().min_by_key(|&at| chunks[at].size) {
            let rest = chunks[at].size - taken;
            chunks[at] = Chunk { block, size: taken };
            if rest > 0 && self.count < CHUNKS {
                chunks.copy_within(at + 1..self.count, at + 2);
                chunks[at + 1] = Chunk { block: 0, size: rest };
                self.count += 1;
            }
            return 0;
        }
        if self.top < taken && size > freed {
            return size; // mapped by itself
        }
        if self.count == CHUNKS {
            chunks.copy_within(1.., 0); // the lowest is forgotten, as if it lived on
            self.count -= 1;
        }
        chunks[self.count] = Chunk { block, size: taken };
        self.count += 1;
        let fresh = taken.saturating_sub(self.used).min(size);
        self.used = self.used.saturating_sub(taken);
        self.top = if self.top >= taken { self.top - taken } else { PAD };
        fresh
    }

    /// Frees a block; returns the largest that was freed so far.
    pub fn free(&mut self, block: usize, size: usize, freed: usize) -> usize {
        self.free_at(self.find(block), size, freed)
    }

    fn free_at(&mut self, at: Option<usize>, size: usize, freed: usize) -> usize {
        let Some(at) = at else {
            return if size <= MOST { size.max(freed) } else { freed }; // it was mapped by itself, or is forgotten
        };
        self.chunks[at].block = 0;
        for left in [at, at.saturating_sub(1)] {
            if left + 1 < self.count && self.chunks[left].block == 0 && self.chunks[left + 1].block == 0 {
                self.chunks[left].size += self.chunks[left + 1].size;
                self.chunks.copy_within(left + 2..self.count, left + 1);
                self.count -= 1;
            }
        }
        if self.chunks[self.count - 1].block == 0 {
            self.count -= 1;
            self.top += self.chunks[self.count].size;
            self.used += self.chunks[self.count].size;
        }
        let may_be_free = if freed > INITIAL { 2 * freed } else { INITIAL };
        if self.top >= may_be_free {
            (self.top, self.used) = (PAD, self.used.min(PAD));
        }
        freed
    }

    /// Changes the size of a block, and perhaps its number; returns the bytes of it that are fresh, and the largest that was
    /// freed so far.
    pub fn resize(
        &mut self,
        (block, old): (usize, usize),
        (number, size): (usize, usize),
        freed: usize,
    ) -> (usize, usize) {
        let Some(at) = self.find(block) else {
            // Mapped by itself, its pages are mapped elsewhere with it.
            return (size.saturating_sub(old), freed);
        };
        let more = size.saturating_add(HEADER).saturating_sub(self.chunks[at].size);
        let next = self.chunks[..self.count].get(at + 1);
        if more == 0 || next.is_some_and(|next| next.block == 0 && next.size >= more) {
            self.chunks[at] = Chunk { block: number, size: self.chunks[at].size + more };
            if more > 0 {
                self.chunks[at + 1].size -= more;
            }
            return (0, freed);
        }
        if next.is_none() && self.top >= more {
            self.chunks[at] = Chunk { block: number, size: self.chunks[at].size + more };
            let fresh = more.saturating_sub(self.used);
            (self.top, self.used) = (self.top - more, self.used.saturating_sub(more));
            return (fresh, freed);
        }
        self.chunks[at].block = MOVING;
        let fresh = self.allocate(number, size, freed);
        (fresh, self.free(MOVING, old, freed))
    }

    fn find(&self, block: usize) -> Option<usize> {
        self.chunks[..self.count].iter().rposition(|chunk| chunk.block == block)
    }
}

impl Default for Heap {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Begins to raise the thresholds, from where they are now. Not to be called where another `malloc` is in force, which would
/// keep the blocks, nor where glibc's fills them (`MALLOC_PERTURB_`).
pub fn begin_to_raise(now: usize) {
    FREED.fetch_max(now, Relaxed);
    RAISED.store(now, Relaxed);
}

/// The size that glibc's thresholds were raised for until now, to a sixteenth, by blocks that a program freed before anybody
/// looked. Python's imports free some hundred KiB, without which temporaries of 80 kB would seem to be returned and faulted
/// in again for ever. `make_and_free` allocates and frees a block by glibc's functions, raising nothing, and returns its address.
pub fn raised_for(make_and_free: impl Fn(usize) -> usize) -> usize {
    let mut size = INITIAL;
    // A block that is mapped by itself begins a header beyond a page.
    while size < MOST && make_and_free(size + 1) % os::page_size() != HEADER {
        size += size / 16;
    }
    size.min(MOST)
}

static HEAPS_OF_ARENAS: [Mutex<Heap>; HEAPS] = [const { Mutex::new(Heap::EMPTY) }; HEAPS];
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The number of this thread's arena.
fn arena() -> usize {
    thread_local! {
        static ARENA: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    ARENA.with(|arena| {
        if arena.get() == usize::MAX {
            arena.set(THREADS.fetch_add(1, Relaxed) % HEAPS);
        }
        arena.get()
    })
}

/// Calls `body` with the heap of this thread's arena; nothing where another thread or an interrupted one uses it.
fn with_heap<T>(body: impl FnOnce(&mut Heap) -> T) -> Option<T> {
    HEAPS_OF_ARENAS[arena()].try_lock().ok().map(|mut heap| body(&mut heap))
}

/// The same with the heap that has a block, which may be another thread's, and its place there; with this thread's where none
/// has it.
fn with_heap_of<T>(block: usize, body: impl FnOnce(&mut Heap, Option<usize>) -> T) -> Option<T> {
    let own = arena();
    let arenas = THREADS.load(Relaxed).min(HEAPS);
    for arena in (own..arenas).chain(0..own) {
        if let Ok(mut heap) = HEAPS_OF_ARENAS[arena].try_lock()
            && let at @ Some(_) = heap.find(block)
        {
            return Some(body(&mut heap, at));
        }
    }
    with_heap(|heap| body(heap, None))
}

/// From here on a block is simulated. glibc uses the places of smaller ones again wherever they lie, so they take fresh memory
/// where more of them live than ever before; that it returns some where they leave its top is left out. The simulation would
/// cost arrays of 20 KiB that are kept half of their time.
const SIMULATED: usize = 64 << 10;
/// Bytes of smaller blocks that are live, and the most so far, as far as threads have told; they do in steps of this size.
static SMALLER: [AtomicIsize; 2] = [const { AtomicIsize::new(0) }; 2];
const STEP: isize = 128 << 10;
thread_local! {
    /// What this thread has not told yet.
    static UNTOLD: Cell<isize> = const { Cell::new(0) };
}

#[inline]
fn count_smaller(change: isize) {
    let untold = UNTOLD.get() + change;
    if untold.abs() < STEP {
        return UNTOLD.set(untold);
    }
    UNTOLD.set(0);
    let [live, most] = &SMALLER;
    let live = live.fetch_add(untold, Relaxed) + untold;
    let before = most.fetch_max(live, Relaxed);
    FAULTED.fetch_add((live - before).max(0) as u64, Relaxed);
}

/// Records that a pool serves a block of so many bytes, for an array of NumPy's or anything else.
#[inline]
pub fn allocated(address: usize, size: usize, is_array: bool) {
    if size < LEAST || address == 0 {
        return;
    }
    if size < SIMULATED {
        return count_smaller(size as isize);
    }
    let fresh = with_heap(|heap| heap.allocate(address, size, FREED.load(Relaxed))).unwrap_or(0);
    if fresh > 0 {
        LAST.set((address, size, fresh));
        let fresh = Fresh::of(fresh, size, is_array);
        FAULTED.fetch_add(fresh.small, Relaxed);
        FAULTED_HUGE.fetch_add(fresh.huge, Relaxed);
    }
}

thread_local! {
    /// The last block of this thread that was fresh: its address, bytes and fresh bytes.
    static LAST: Cell<(usize, usize, usize)> = const { Cell::new((0, 0, 0)) };
}

/// Records that the program asks for huge pages at an address, as NumPy does of a block that `malloc` has just given it.
pub fn advised_huge(address: usize) {
    let (block, size, fresh) = LAST.take();
    if (block..block + size).contains(&address) {
        let huge = Fresh::of(fresh, size, true).huge;
        FAULTED.fetch_sub(huge, Relaxed);
        FAULTED_HUGE.fetch_add(huge, Relaxed);
    }
}

/// Records that such a block was freed. The thresholds wait for that, so that a program whose blocks live on keeps no more
/// than plainly.
#[inline]
pub fn freed(address: usize, size: usize) {
    if size < LEAST {
        return;
    }
    if size < SIMULATED {
        return count_smaller(-(size as isize));
    }
    let before = FREED.load(Relaxed);
    if let Some(now) = with_heap_of(address, |heap, at| heap.free_at(at, size, before)).filter(|&now| now > before) {
        FREED.fetch_max(now, Relaxed);
    }
}

/// Records that such a block was resized, and has another address now.
pub fn resized(old: (usize, usize), new: (usize, usize)) {
    if old.1 < SIMULATED || new.1 < SIMULATED {
        freed(old.0, old.1);
        return allocated(new.0, new.1, false);
    }
    let before = FREED.load(Relaxed);
    if let Some((fresh, now)) = with_heap_of(old.0, |heap, _| heap.resize(old, new, before)) {
        FREED.fetch_max(now, Relaxed);
        FAULTED.fetch_add(fresh as u64, Relaxed);
    }
}

/// Bytes that glibc would have taken fresh from the system for all blocks so far, as far as this simulation tells.
pub fn faulted() -> Fresh {
    Fresh { small: FAULTED.load(Relaxed), huge: FAULTED_HUGE.load(Relaxed) }
}

/// Raises glibc's thresholds to the largest block that was freed. To be called where a call of `malloc` does no harm:
/// `make_and_free` allocates and frees a block of so many bytes by glibc's functions.
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
        let trimmed = faulted_by(100, || temporaries(&[100 * KIB; 4]));
        assert!(trimmed >= 100 * 200 * KIB, "{trimmed}"); // 68 pages of 100 a turn
        let small = faulted_by(100, || temporaries(&[30 * KIB, 20 * KIB]));
        assert!(small <= 50 * KIB, "{small}"); // none
        temporaries(&[4096 * KIB]);
        let kept = faulted_by(100, || temporaries(&[100 * KIB; 4]));
        assert!(kept <= 400 * KIB, "{kept}"); // none
        let again = faulted_by(100, || temporaries(&[4096 * KIB]));
        assert!(again <= 4096 * KIB, "{again}"); // none
        let two = faulted_by(10, || temporaries(&[4096 * KIB; 2]));
        assert!(two >= 9 * 8192 * KIB, "{two}"); // all of them: twice the threshold is too much for the top
        assert_eq!(faulted_by(10, || temporaries(&[40960 * KIB])), 409_600 * KIB);
        let lasting = faulted_by(400, || allocated(1, 20 * KIB, false)); // 2,000 pages
        assert!((7000 * KIB..=8000 * KIB).contains(&lasting), "{lasting}");
    }

    /// As realloc(3): a block that was mapped by itself is never copied, one at the top grows there, another moves.
    #[test]
    fn resized_blocks_take_what_they_grow_by() {
        let mut heap = Heap::default();
        assert_eq!(heap.allocate(1, 256 * KIB, INITIAL), 256 * KIB);
        assert_eq!(heap.resize((1, 256 * KIB), (2, 1024 * KIB), INITIAL), (768 * KIB, INITIAL));
        assert_eq!(heap.free(2, 1024 * KIB, INITIAL), 1024 * KIB);
        let freed = 1024 * KIB;
        heap.allocate(3, 100 * KIB, freed);
        let (fresh, _) = heap.resize((3, 100 * KIB), (3, 150 * KIB), freed);
        assert_eq!(fresh, 50 * KIB, "within what the heap has too much");
        heap.allocate(4, 100 * KIB, freed);
        let (fresh, _) = heap.resize((3, 150 * KIB), (5, 200 * KIB), freed);
        assert_eq!(fresh, 200 * KIB, "copied");
        let (fresh, _) = heap.resize((4, 100 * KIB), (4, 100 * KIB), freed);
        assert_eq!((fresh, heap.allocate(6, 150 * KIB, freed)), (0, 0), "where the first block was");
    }

    /// The blocks of `around = roll(u) + roll(u) + roll(u) + roll(u); u = u + 0.1 * (around - 4 * u)`, of which glibc returns
    /// two in three steps.
    #[test]
    fn the_top_is_returned_where_temporaries_of_equal_size_meet() {
        const SIZE: usize = 2_000_000;
        const STEPS: usize = 120;
        let (mut heap, mut number, mut fresh) = (Heap::default(), 0, 0);
        let mut make = |heap: &mut Heap| {
            number += 1;
            fresh += heap.allocate(number, SIZE, SIZE);
            number
        };
        let (mut u, mut around) = (make(&mut heap), make(&mut heap));
        for _ in 0..STEPS {
            let sum = make(&mut heap);
            for _ in 0..3 {
                let rolled = make(&mut heap);
                heap.free(rolled, SIZE, SIZE);
            }
            heap.free(std::mem::replace(&mut around, sum), SIZE, SIZE);
            let (four, next) = (make(&mut heap), make(&mut heap));
            heap.free(four, SIZE, SIZE);
            heap.free(std::mem::replace(&mut u, next), SIZE, SIZE);
        }
        let share = fresh as f64 / (STEPS * SIZE) as f64;
        assert!((0.5..1.0).contains(&share), "{share}"); // 0.85 of a block in each step
    }
}
