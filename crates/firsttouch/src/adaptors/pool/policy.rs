//! What a pool decides: which pages a block gets, how much idle memory stays, and for how long. Every number that can be
//! argued about stands here, beside the argument.
//!
//! **Which pages.** On a huge page one page fault serves 2 MiB, and a program walks through it with fewer misses of the
//! address cache; but a program that writes 4 KiB there makes all of it resident. So huge pages are earned, in three ways:
//!
//! - *By what was filled.* Fresh memory comes on base pages until the pool has handed out [`FIRST_LOOK`] of them. Then it
//!   looks at some of these blocks that are still live. If they are filled, the next [`CREDIT`] of fresh memory comes on huge
//!   pages. Once that is used up, a little comes on base pages again, and the pool looks at those. Temporaries prove
//!   nothing: they are recycled, and take no fresh memory.
//! - *By the block itself.* If a block on base pages comes back filled, and a large block is to recycle it, it gets huge
//!   pages instead: its pages go back, and as many others take their place.
//! - *By precedent.* NumPy asks for huge pages for the inner part of each array of 4 MiB and more, so a pool for arrays
//!   does as well, even where nothing is known.
//!
//! After a look that finds sparse blocks where the one before found filled ones, [`CREDIT`] comes on base pages before the
//! next. So, precedents aside, what lies on huge pages and is not filled is 32 MiB, and about as much as the program fills if
//! it is filled and sparse in turns.
//!
//! **Where in its span a block begins.** If every block began at a page, element `i` of all arrays would lie at the same
//! offset in a page. A program that writes `out[i + 1]` and then reads `x[i]` then meets an address whose low 12 bits are
//! those of a store that is still under way, and the processor waits; `rep movsb`, with which the C library copies, is ten
//! times slower on some AMD processors if it writes a few bytes ahead of where it reads. So blocks begin at different
//! offsets, as slab allocators color their objects.

use crate::heap;
use crate::heap::growing::Span;
use crate::heap::segment::{Fresh, Occupant, PageKind, huge_page};
use crate::layout::round_down;
use crate::os;
use std::fmt;
use std::time::Duration;

/// Blocks from this size on lie in units of 64 KiB and may have huge pages of their own: rounding wastes at most an eighth,
/// and several share a huge page.
const HUGE_MIN: usize = 512 << 10;
/// The same for zeroed requests, which may be sparse. NumPy's threshold is the same.
const HUGE_MIN_ZEROED: usize = 4 << 20;
/// From this size on NumPy asks for huge pages.
pub const NUMPYS_HUGE: usize = 4 << 20;
/// Dirty zeroed blocks of this size and more are discarded instead of cleared: the kernel then zeroes what is used, and only
/// that.
pub const RENEW_MIN: usize = 32 << 20;
/// The largest huge page that several blocks share.
const SHARED_MAX: usize = 2 << 20;

/// Fresh bytes on base pages before the first look: what is left of a huge page is then less than what is in use.
const FIRST_LOOK: usize = 2 << 20;
/// The same before a look after a good one. A look costs some microseconds, as do 64 KiB of base pages; a program that is
/// filled pays for base pages here.
const NEXT_LOOK: usize = 512 << 10;
/// The most before any look: after each that finds nothing filled, twice as much comes on base pages before the next.
const LAST_LOOK: usize = 64 << 20;
/// Bytes that a good look allows on huge pages.
const CREDIT: usize = 32 << 20;
/// Blocks that are remembered for a look, the fewest that a first look is worth, and pages of each that it asks about.
const WATCHED: usize = 16;
const FEWEST: usize = 3;
const PAGES: usize = 16;

/// The idle memory that a pool with default options keeps: what is held stays below the peak of what was in use, an eighth
/// of it, and this. Over the demonstration and the nine programs of `benchmarks/programs`, in one to three runs of each, peaks
/// of resident memory beside a quarter's were 0.87 for the demonstration, 0.97 for image_pyramid and 0.95 for
/// particle_in_cell, and at most 1.03, for multigrid. A quarter faulted in 0.1 GiB again of some 60, an eighth 0.4, a tenth
/// 0.65.
const KEPT_PART: usize = 8;
const SLACK: usize = 2 << 20;
/// How long memory stays idle by default: longer than most pauses between two steps of a computation.
pub const DECAY: Duration = Duration::from_secs(1);
/// With less idle memory than this, the memory available on the machine is not queried.
pub(super) const ASK_MIN: usize = 16 << 20;
/// The fraction of a bound on address space that may be idle. A program that without a pool needs five sixths of its
/// bound then still has room for what other code requests, and for this library (16 MiB with all bundled allocators).
pub(super) const IDLE_SPACE: usize = 16;

/// How often a block of so many bytes may take its pages along before it is copied once. Each time they lie in one mapping more, of
/// which a process may have 65,530.
pub(super) fn moves(bytes: usize) -> usize {
    (bytes >> 21).min(Occupant::MOST_MOVES)
}

/// A shrinking block returns its end if that is at least this large, and an eighth of it.
pub(super) const CUT_MIN: usize = 64 << 10;

/// Below this size, `memset` is always faster. Up to 1 MiB it is faster where the block is in the cache (300 KiB: 2.9 us, with the
/// question 5.8), but of 400 sparse arrays of 300 KiB twice as much was resident as plainly.
pub(super) const LOOK_MIN: usize = 256 << 10;

/// The most shards of a pool.
pub(super) const SHARDS: usize = 64;
/// The number of spans that a shard remembers.
pub(super) const ROOM: usize = 8;
/// The largest span that a shard remembers: that of a block of 512 KiB, with the unit more in which it begins at different
/// places. If larger ones were missing in the heap, that would take more memory (a sixth for random sizes up to 16 MiB).
pub(super) const SHARD_MAX: usize = (512 + 64) << 10;
/// Changes of this size are reported to the meter.
pub(super) const STEP: usize = 1 << 20;

/// Whether several blocks share a huge page.
fn shares() -> bool {
    os::huge_page_size().is_some_and(|page| page <= SHARED_MAX)
}

/// The least size of requests that may have huge pages of their own; where huge pages are larger, half of one. (With base
/// pages of 16 KiB a huge page has 32 MiB, with 64 KiB it has 512: one small array would take all of it.) Zeroed requests
/// never have them where a huge page is larger than their threshold: two sparse arrays of 200 MiB took 443 MB, NumPy's 7.
/// Where there are no huge pages, no request has them.
#[inline]
pub fn huge_min(zeroed: bool) -> usize {
    match (os::huge_page_size(), zeroed) {
        (None, _) => usize::MAX,
        (Some(..=SHARED_MAX), false) => HUGE_MIN,
        (Some(page), false) => page / 2,
        (Some(page), true) if page > HUGE_MIN_ZEROED => usize::MAX,
        (Some(_), true) => HUGE_MIN_ZEROED,
    }
}

/// Bytes that may be held if `active` was the most in use.
pub(super) fn allowed(active: usize) -> usize {
    active + active / KEPT_PART + SLACK
}

/// Bytes that may be idle now: at most what the machine or the container have left.
pub(super) fn idle_limit(max_idle: usize, idle: usize) -> usize {
    if idle < ASK_MIN { max_idle } else { max_idle.min(os::headroom()) }
}

/// Idle bytes beyond those that could not be purged from which on it is worth while to look for more.
pub(super) const WORTH_A_SEARCH: usize = SLACK / 8;

/// Where the memory of a block came from, and the rule that decided about its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Another block had it before.
    Recycled = 1,
    /// Fresh, on base pages: huge pages are not wanted, or not to be had for such a size.
    Off,
    /// Fresh, on base pages: it is small and zeroed, so it may be sparse.
    Sparse,
    /// Fresh, on base pages: nothing is known, or the blocks that were looked at are sparse.
    Unknown,
    /// Fresh, on huge pages: the blocks that were looked at are filled.
    Credit,
    /// Fresh, on huge pages inside: NumPy would ask for them as well.
    Precedent,
    /// Fresh, on huge pages, in place of filled base pages that were idle.
    Exchanged,
}

impl Origin {
    /// The origin that a number stands for.
    pub(crate) fn of(number: u8) -> Option<Self> {
        use Origin::{Credit, Exchanged, Off, Precedent, Recycled, Sparse, Unknown};
        let all = [Recycled, Off, Sparse, Unknown, Credit, Precedent, Exchanged];
        all.into_iter().find(|&origin| origin as u8 == number)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recycled => "recycled, on the pages that an earlier block had",
            Self::Off => "fresh, on base pages, because huge pages are not wanted or larger than such a block can use",
            Self::Sparse => "fresh, on base pages, because a small zeroed block may be used in few places",
            Self::Unknown => "fresh, on base pages, because the program was not seen to fill the blocks that it keeps",
            Self::Credit => "fresh, on huge pages, because the program filled the blocks that it kept",
            Self::Precedent => "fresh, on huge pages except at its ends, as NumPy asks for arrays of this size",
            Self::Exchanged => "fresh, on huge pages, because the block before it on base pages was filled",
        })
    }
}

/// What is known of how a program fills its memory; see the module.
pub(super) struct Evidence {
    /// What may still come on huge pages, if the last look found filled blocks.
    credit: Option<usize>,
    /// Fresh bytes that came on base pages since the last look, and how many cause the next one.
    seen: usize,
    next: usize,
    /// Some of their blocks, and how many there were.
    watched: [Watched; WATCHED],
    count: usize,
}

/// A block, and the base pages in it.
#[derive(Clone, Copy)]
struct Watched {
    block: usize,
    start: usize,
    bytes: usize,
}

impl Evidence {
    pub(super) const fn new() -> Self {
        let nowhere = Watched { block: 0, start: 0, bytes: 0 };
        Self { credit: None, seen: 0, next: FIRST_LOOK, watched: [nowhere; WATCHED], count: 0 }
    }

    /// Which pages fresh memory for a request gets, in which region, and why. For arrays NumPy would ask for huge pages.
    pub(super) fn pages(&mut self, size: usize, zeroed: bool, is_array: bool) -> (PageKind, Fresh, Origin) {
        let is_large = size >= huge_min(zeroed);
        if !is_large && (zeroed || !shares()) {
            return (PageKind::Base, Fresh::Base, if zeroed { Origin::Sparse } else { Origin::Off });
        }
        let lacks = |credit: Option<usize>| credit.is_none_or(|left| left < size);
        let fewest = if self.credit.is_none() { FEWEST } else { 1 };
        if lacks(self.credit) && self.seen >= self.next && self.count >= fewest {
            self.look();
        }
        if !lacks(self.credit) {
            let kind = if is_large { PageKind::Huge } else { PageKind::Base };
            return (kind, Fresh::Huge, Origin::Credit);
        }
        if is_array && is_large && size >= NUMPYS_HUGE {
            return (PageKind::Huge, Fresh::Inner, Origin::Precedent);
        }
        (PageKind::Base, Fresh::Base, Origin::Unknown)
    }

    /// Records that the block in a span took `fresh` bytes, `huge` of them on huge pages, as `origin` says.
    pub(super) fn taken(&mut self, span: Span, origin: Origin, fresh: usize, huge: usize) {
        if origin == Origin::Credit {
            self.grown(huge);
            return;
        }
        self.seen += fresh - huge;
        // All of a huge page is there once a byte of it is used, so only what lies on base pages says anything.
        let (start, end) = (span.address(), span.address() + span.bytes());
        let start = if huge == 0 { start } else { end - end % huge_page() };
        if start + PAGES * os::page_size() > end && huge > 0 {
            return;
        }
        // Of n blocks each is remembered with the same likelihood, as if by chance.
        let golden = (self.count as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let at = if self.count < WATCHED { self.count } else { (golden >> 32) as usize % (self.count + 1) };
        if let Some(place) = self.watched.get_mut(at) {
            *place = Watched { block: span.block(), start, bytes: end - start };
        }
        self.count += 1;
    }

    /// Records that so many bytes came on huge pages.
    pub(super) fn grown(&mut self, huge: usize) {
        self.credit = self.credit.map(|left| left.saturating_sub(huge));
    }

    /// Looks at the remembered blocks that are live. If there are several, not at the one that came last, which the program
    /// may be about to fill.
    fn look(&mut self) {
        let watched = &self.watched[..self.count.min(WATCHED)];
        let others = if (2..=WATCHED).contains(&self.count) { &watched[..self.count - 1] } else { watched };
        let (mut asked, mut there) = (0, 0);
        for &Watched { start, bytes, .. } in others.iter().filter(|watched| heap::block_at(watched.block).is_some()) {
            asked += bytes;
            there += written_bytes(start, bytes);
        }
        if asked == 0 {
            self.next = self.seen + FIRST_LOOK; // they were temporaries: nothing is known
            return;
        }
        let is_good = 8 * there >= 7 * asked;
        if !is_good && self.count == 1 {
            return; // it may be filled yet
        }
        let (credit, next) = match (is_good, self.credit) {
            (true, _) => (Some(CREDIT), NEXT_LOOK),
            (false, Some(_)) => (None, CREDIT),
            (false, None) => (None, (2 * self.seen).clamp(FIRST_LOOK, LAST_LOOK)),
        };
        *self = Self { credit, next, ..Self::new() };
    }
}

/// Bytes of a range that were written, as far as some of its pages tell.
pub fn written_bytes(address: usize, size: usize) -> usize {
    size / PAGES * written(address, size)
}

/// How many of [`PAGES`] pages, spread over a range, were written. Reading leaves the zero page, of which the kernel knows.
pub(super) fn written(address: usize, size: usize) -> usize {
    let page = os::page_size();
    let pages: [usize; PAGES] = std::array::from_fn(|n| {
        let golden = (n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15); // multiples that lie as evenly as can be
        round_down(address + ((u128::from(golden) * size as u128) >> 64) as usize, page)
    });
    let mut nodes = [0; PAGES];
    match os::nodes_of(&pages, &mut nodes) {
        Ok(()) => nodes.iter().filter(|&&node| node >= 0).count(),
        Err(_) => pages.iter().filter(|&&at| os::resident_pages(at, page).is_ok_and(|there| there > 0)).count(),
    }
}

/// Whether nearly all of a range was written.
pub(super) fn is_filled(address: usize, size: usize) -> bool {
    8 * written(address, size) >= 7 * PAGES
}

/// Whether at least half of a range was written.
pub(super) fn is_half_filled(address: usize, size: usize) -> bool {
    2 * written(address, size) >= PAGES
}

/// Bytes between two colors, and the largest alignment that all of them keep: a cache line.
pub(super) const LINE: usize = 64;
/// The number of colors: within any page, and without a divisor in common with the stride.
pub(super) const COLORS: usize = 56;
/// Colors from one block to the next: blocks that are allocated one after another should be far from each other.
const STRIDE: u64 = 33;
/// The largest offset of a block in its span.
pub(super) const MOST: usize = LINE * (COLORS - 1);

/// Bytes that a span of units of `unit` bytes needs for a block of `size` bytes: in any color where a unit more costs
/// little, in one of two where it costs up to an eighth, and else just `size`.
pub(super) fn room(unit: usize, size: usize, align: usize) -> usize {
    size + match size / unit {
        _ if align > LINE => 0,
        0..8 => 0,
        8..32 => LINE,
        _ => MOST,
    }
}

/// The offset of the `turn`-th block in a span with `spare` bytes more than it needs.
pub(super) fn offset(turn: u64, spare: usize, align: usize) -> usize {
    if align > LINE {
        return 0;
    }
    let color = (turn.wrapping_mul(STRIDE) % COLORS as u64) as usize;
    let colors = (spare / LINE + 1).min(COLORS);
    color * colors / COLORS * LINE
}
