//! Every number that decides what a pool and its heaps do, beside the argument for it. How a pool learns what a program does with
//! its memory, and chooses pages by that, is in `adaptors/pool/evidence.rs`.
//!
//! A `PART` or `WASTE` is a divisor: 8 stands for an eighth.

use crate::os;
use std::time::Duration;

// ---- Pages

/// Blocks from this size on lie in units of 64 KiB and may have huge pages of their own: rounding wastes at most an eighth,
/// and several share a huge page.
const HUGE_MIN: usize = 512 << 10;
/// [`HUGE_MIN`] of zeroed requests, whose blocks may be sparse: where NumPy asks for huge pages, too.
const HUGE_MIN_ZEROED: usize = 4 << 20;
/// From this size on NumPy asks for huge pages.
pub const NUMPYS_HUGE: usize = 4 << 20;
/// The largest huge page that several blocks share.
const SHARED_MAX: usize = 2 << 20;
/// Bytes of a unit of memory on huge pages, so small that arrays share these.
pub(crate) const HUGE_UNIT: usize = 64 << 10;
/// Idle memory on huge pages serves smaller blocks of at least this many units: rounding then wastes at most a quarter.
pub(crate) const SMALL_ON_HUGE: usize = 4;

/// Fresh bytes on base pages before the first look. A program that uses this much uses more than a huge page can waste.
pub(crate) const FIRST_LOOK: usize = 2 << 20;
/// Fresh bytes on base pages between a look that found filled blocks and the next: eight times what a look costs (some
/// microseconds, as the page faults of 64 KiB), and not more, as a program that fills its blocks loses by each of them.
pub(crate) const NEXT_LOOK: usize = 512 << 10;
/// The most fresh bytes on base pages before any look: after each that finds sparse blocks, the next waits for twice as many.
pub(crate) const LAST_LOOK: usize = 64 << 20;
/// Fresh bytes on huge pages that a look allows that found filled blocks.
pub(crate) const CREDIT: usize = 32 << 20;
/// Blocks that are remembered for a look.
pub(crate) const SAMPLES: usize = 16;
/// The fewest remembered blocks that are worth a first look.
pub(crate) const FEWEST_SAMPLES: usize = 3;
/// Pages of each block that a look asks about.
pub(crate) const SAMPLE_PAGES: usize = 16;
/// A block is filled if at least this many of [`SAMPLE_PAGES`] were written.
pub(crate) const FILLED: usize = SAMPLE_PAGES * 7 / 8;
/// Recycled blocks that are passed over after one that was not filled: a look takes several times as long as the request.
pub(crate) const SKIPPED: usize = 63;

/// Whether several blocks share a huge page.
pub(crate) fn shares_huge_pages() -> bool {
    os::available_huge_page_size().is_some_and(|page| page <= SHARED_MAX)
}

/// The least size of requests that may have huge pages of their own; where huge pages are larger, half of one. (With base
/// pages of 16 KiB a huge page has 32 MiB, with 64 KiB it has 512: one small array would take all of it.) Zeroed requests,
/// which may be sparse, never have them where a huge page is larger than their threshold. Where there are no huge pages, or
/// they are switched off, no request has them.
#[inline]
pub fn huge_min(zeroed: bool) -> usize {
    match (os::available_huge_page_size(), zeroed) {
        (None, _) => usize::MAX,
        (Some(..=SHARED_MAX), false) => HUGE_MIN,
        (Some(page), false) => page / 2,
        (Some(page), true) if page > HUGE_MIN_ZEROED => usize::MAX,
        (Some(_), true) => HUGE_MIN_ZEROED,
    }
}

// ---- Zeroed requests that get dirty memory

/// From this size on dirty memory is discarded instead of cleared: the kernel then zeroes what is used, and only that.
pub const RENEW_MIN: usize = 32 << 20;
/// From this size on dirty memory is discarded if it was hardly used. Below, `memset` is always faster. Up to 1 MiB it is faster
/// where the block is in the cache, but sparse arrays would have twice the resident memory that they have without a pool.
pub(crate) const DISCARD_MIN: usize = 256 << 10;
/// A block was hardly used if fewer of [`SAMPLE_PAGES`] were.
pub(crate) const HALF_FILLED: usize = SAMPLE_PAGES / 2;

// ---- What stays idle, and how long

/// The idle memory that a pool with default options keeps: what is held stays below the peak of what was in use, an eighth
/// of it, and this. A quarter and a tenth beside it are in `docs/notes/060-rules-of-retention.md`.
const KEPT_PART: usize = 8;
const SLACK: usize = 2 << 20;
/// Where more is held, this part of what may be held goes as well, because searching for victims is expensive.
const PURGED_PART: usize = 32;
/// A search for victims is worth while once this many bytes more are idle than the last one could not purge.
pub(crate) const WORTH_A_SEARCH: usize = SLACK / 8;
/// Epochs of idleness after which memory goes first, next and last.
pub(crate) const PURGE_ORDER: [u8; 3] = [5, 1, 0];

/// How long memory stays idle by default: longer than most pauses between two steps of a computation.
pub const DECAY: Duration = Duration::from_secs(1);
/// Epochs until idle memory has decayed, if the time is at least that many ticks.
pub(crate) const DECAY_EPOCHS: u32 = 10;
/// Time between two ticks of the background purger. Bounds on idle memory may be exceeded for so long (law 5).
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Fresh bytes after which the bounds on memory are queried; and with less that is idle, what the machine has left is not.
pub(crate) const ASK_MIN: usize = 16 << 20;
/// The fraction of a bound on address space that may be idle. A program that without a pool needs five sixths of its
/// bound then still has room for what other code requests, and for this library (16 MiB with all bundled allocators).
pub(crate) const IDLE_SPACE: usize = 16;

/// From this many bytes on memory is unmapped: it then costs no address space, and locked memory can go too. Below,
/// holes would cost mappings, so the pages are discarded and the mapping stays.
const UNMAP_MIN: usize = 1 << 20;
/// [`UNMAP_MIN`] where the process has a bound on its address space.
const UNMAP_MIN_BOUNDED: usize = 64 << 10;

/// Bytes that may be held if `active` was the most in use.
pub(crate) fn allowed(active: usize) -> usize {
    active + active / KEPT_PART + SLACK
}

/// Bytes to purge where `excess` too many are held.
pub(crate) fn purged_at_a_time(excess: usize, active: usize) -> usize {
    excess + allowed(active) / PURGED_PART
}

/// Bytes that may be idle now: `chosen`, by default a quarter of the memory of the machine or container, and at most what these
/// have left.
pub(crate) fn idle_limit(chosen: Option<usize>, idle: usize) -> usize {
    let most = chosen.unwrap_or_else(|| os::memory_total() / 4);
    if idle < ASK_MIN { most } else { most.min(os::headroom()) }
}

/// Epochs after which idle parts of huge pages go, later than all else, because the rest of a split one stays on base pages.
pub(crate) fn epochs_of_parts(decay_epochs: u8) -> u8 {
    decay_epochs.saturating_add(decay_epochs / 2)
}

/// Bytes from which on idle memory is unmapped.
pub(crate) fn unmap_min() -> usize {
    if os::address_space_limit().is_some() { UNMAP_MIN_BOUNDED } else { UNMAP_MIN }
}

// ---- What glibc keeps (`heap/malloc_trim.rs`)

/// Bytes that are worth a trim, or a line in a report.
pub const WORTH_A_TRIM: usize = 8 << 20;
/// Memory that was free at every look for this long is idle.
pub const TRIM_AFTER: Duration = Duration::from_millis(500);
/// Looking and trimming take at most a hundredth of the time.
pub const TRIM_SHARE: u32 = 100;

// ---- Which free memory serves a request

/// The most shards of a pool.
pub(crate) const SHARDS: usize = 64;
/// The number of spans that a shard remembers.
pub(crate) const SHARD_SPANS: usize = 8;
/// The largest span that a shard remembers: that of a block of 512 KiB, with the unit more in which it begins at different
/// places. If larger ones were missing in the heap, that would take more memory (a sixth for random sizes up to 16 MiB).
pub(crate) const SHARD_MAX: usize = (512 + 64) << 10;
/// A span of a shard is not split, so it may exceed a request by at most this part of it, and a unit.
pub(crate) const SHARD_WASTE: usize = 16;
/// Free spans of a class that are examined for the best fit.
pub(crate) const BEST_FIT: usize = 64;
/// Units of a free span that are examined for the first dirty one: more than lie before a block that begins at a huge page.
pub(crate) const FIRST_DIRTY: u32 = 64;
/// Idle blocks of a pool over an upstream that a request tries. To try this many costs less than a page fault.
pub(crate) const UPSTREAM_TRIES: usize = 256;
/// Such a block may exceed the request by at most this part of it.
pub(crate) const UPSTREAM_WASTE: usize = 8;
/// Changes of this size are reported to the meter.
pub(crate) const METER_STEP: usize = 1 << 20;

// ---- Fresh memory

/// Bytes that are mapped at a time on base pages.
pub(crate) const BASE_EXTENT: usize = 1 << 20;
/// From this many bytes on the system is asked first whether it has the memory.
pub(crate) const PROBE_MIN: usize = 1 << 30;
/// Segments of a region. Each is at least as large as all that was mapped before.
pub(crate) const MAX_SEGMENTS: usize = 256;

// ---- Blocks that change their size

/// A block that moves as it grows gets room for this part more, or it would move at every step.
const GROWTH_PART: usize = 8;
/// A shrinking block returns its end if that is at least this large, and at least this part of it.
const CUT_MIN: usize = 64 << 10;
const CUT_PART: usize = 8;

/// The size for which a block moves that is to grow to `size` bytes.
pub(crate) fn with_growth(size: usize) -> usize {
    size.saturating_add(size / GROWTH_PART)
}

/// Whether a block of `bytes` returns the `unneeded` ones.
pub(crate) fn cuts(bytes: usize, unneeded: usize) -> bool {
    unneeded >= CUT_MIN.max(bytes / CUT_PART)
}

/// How often a block of `bytes` may move with its pages before it is copied once. Each move leaves its pages in one mapping
/// more, of which a process may have 65,530.
pub(crate) fn moves(bytes: usize) -> usize {
    bytes >> 21
}

// ---- Where in its span a block begins
//
// If every block began at a page, element `i` of all arrays would lie at the same offset in a page. A program that writes
// `out[i + 1]` and then reads `x[i]` then meets an address whose low 12 bits are those of a store that is still under way, and the
// processor waits; `rep movsb`, with which the C library copies, is ten times slower on some AMD processors if it writes a few bytes
// ahead of where it reads. So blocks begin at different offsets, as slab allocators color their objects.

/// Bytes between two colors, and the largest alignment that all of them keep: a cache line.
pub(crate) const LINE: usize = 64;
/// The number of colors: within any page, and without a divisor in common with the stride.
pub(crate) const COLORS: usize = 56;
/// Colors from one block to the next: blocks that are allocated one after another should be far from each other.
const STRIDE: u64 = 33;
/// The largest offset of a block in its span.
pub(crate) const MAX_OFFSET: usize = LINE * (COLORS - 1);

/// Bytes that a span of units of `unit` bytes needs for a block of `size` bytes: in any color where a unit more costs
/// little, in one of two where it costs up to an eighth, and else just `size`.
pub(crate) fn span_size(unit: usize, size: usize, align: usize) -> usize {
    size + match size >> unit.trailing_zeros() {
        _ if align > LINE => 0,
        0..8 => 0,
        8..32 => LINE,
        _ => MAX_OFFSET,
    }
}

/// The offset of the `turn`-th block in a span with `spare` bytes more than it needs.
pub(crate) fn offset(turn: u64, spare: usize, align: usize) -> usize {
    if align > LINE {
        return 0;
    }
    let color = (turn.wrapping_mul(STRIDE) % COLORS as u64) as usize;
    let colors = (spare / LINE + 1).min(COLORS);
    color * colors / COLORS * LINE
}
