//! Which pages the blocks of a pool get, by what a program was seen to do with others; the numbers are in `policy.rs`.
//!
//! On a huge page one page fault serves 2 MiB, and a program walks through it with fewer misses of the address cache; but a
//! program that writes 4 KiB there makes all of it resident. So huge pages are earned, in three ways:
//!
//! - *By what was filled.* Fresh memory comes on base pages until the pool has handed out [`FIRST_LOOK`] of them. Then it
//!   looks at some of these blocks that are still live. If they are filled, the next [`CREDIT`] of fresh memory comes on huge
//!   pages. Once that is used up, a little comes on base pages again, and the pool looks at those. Temporaries prove
//!   nothing: they are recycled, and take no fresh memory.
//! - *By the block itself.* If a large request is about to recycle a block on base pages, and that was filled, it gets fresh
//!   huge pages instead, and the base pages go back to the system.
//! - *By precedent.* NumPy asks for huge pages for the inner part of each array of 4 MiB and more, so a pool for arrays
//!   does as well, even where nothing is known. Its ends come on base pages or, if there is credit for one huge page, on huge ones.
//!
//! After a look that finds sparse blocks where the one before found filled ones, [`CREDIT`] comes on base pages before the
//! next. At most 32 MiB lie unfilled on huge pages, not counting precedents, or as much as an alternating program fills.

use crate::heap::segment::{FreshPages, Occupant, RegionKind, huge_page};
use crate::heap::{self, Span};
use crate::layout::round_down;
use crate::os;
use crate::policy::{CREDIT, FEWEST_SAMPLES, FILLED, FIRST_LOOK, LAST_LOOK, NEXT_LOOK, SKIPPED};
use crate::policy::{SAMPLE_PAGES, SAMPLES, huge_min, shares_huge_pages};
use std::fmt;

/// Where the memory of a block came from, and the rule that decided about its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Another block had it before, at least half of it.
    Recycled = 1,
    /// Fresh, on base pages: huge pages are not wanted, or not to be had for such a size.
    Unfit,
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
    const ALL: [Self; 7] = {
        use Origin::{Credit, Exchanged, Precedent, Recycled, Sparse, Unfit, Unknown};
        [Recycled, Unfit, Sparse, Unknown, Credit, Precedent, Exchanged]
    };

    /// The origin that a number stands for.
    pub(crate) fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&origin| origin as u8 == number)
    }
}

const _: () =
    assert!(Origin::ALL.len() < 1 << Occupant::TAG_BITS, "an origin is a block's tag, of which 0 says nothing");

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recycled => "recycled, on the pages that an earlier block had",
            Self::Unfit => "fresh, on base pages, because huge pages are unwanted or larger than such a block can use",
            Self::Sparse => "fresh, on base pages, because a small zeroed block may be used in few places",
            Self::Unknown => "fresh, on base pages, because the program was not seen to fill the blocks that it keeps",
            Self::Credit => "fresh, on huge pages, because the program filled the blocks that it kept",
            Self::Precedent => "fresh, on huge pages except at its ends, as NumPy asks for arrays of this size",
            Self::Exchanged => "fresh, on huge pages, because the block before it on base pages was filled",
        })
    }
}

/// Observations of how a program fills its memory; see the module.
pub(super) struct Evidence {
    /// Bytes that may still come on huge pages, if the last look found filled blocks.
    credit: Option<usize>,
    /// Fresh bytes that came on base pages since the last look, and how many cause the next one.
    seen: usize,
    next: usize,
    /// Some of their blocks, and how many there were.
    samples: [Sample; SAMPLES],
    count: usize,
    /// Blocks that are recycled before one of them is looked at again.
    skipped: usize,
}

/// A block, and the base pages in it.
#[derive(Clone, Copy)]
struct Sample {
    block: usize,
    start: usize,
    bytes: usize,
}

impl Evidence {
    pub(super) const fn new() -> Self {
        let nowhere = Sample { block: 0, start: 0, bytes: 0 };
        Self { credit: None, seen: 0, next: FIRST_LOOK, samples: [nowhere; SAMPLES], count: 0, skipped: 0 }
    }

    /// Chooses the pages that fresh memory for a request gets, and the region; and says why.
    pub(super) fn choose(&mut self, size: usize, zeroed: bool, precedent: bool) -> (RegionKind, FreshPages, Origin) {
        let is_large = size >= huge_min(zeroed);
        if !is_large && (zeroed || !shares_huge_pages()) {
            return (RegionKind::Base, FreshPages::Base, if zeroed { Origin::Sparse } else { Origin::Unfit });
        }
        let needs = if precedent { huge_page() } else { size }; // only its ends need credit
        let lacks = |credit: Option<usize>| credit.is_none_or(|left| left < needs);
        let fewest = if self.credit.is_none() { FEWEST_SAMPLES } else { 1 };
        if lacks(self.credit) && self.seen >= self.next && self.count >= fewest {
            self.look();
        }
        if !lacks(self.credit) {
            let kind = if is_large { RegionKind::Huge } else { RegionKind::Base };
            return (kind, FreshPages::Huge, Origin::Credit);
        }
        if precedent {
            return (RegionKind::Huge, FreshPages::Inner, Origin::Precedent);
        }
        (RegionKind::Base, FreshPages::Base, Origin::Unknown)
    }

    /// Records that the block in a span took `fresh` bytes, `huge` of them on huge pages; `precedent` as in [`Self::choose`].
    pub(super) fn taken(&mut self, span: Span, origin: Origin, precedent: bool, fresh: usize, huge: usize) {
        let price = if precedent { huge.min(huge_page()) } else { huge };
        let (start, end) = (span.address(), span.address() + span.bytes());
        let start = match origin {
            Origin::Exchanged => return,
            Origin::Credit | Origin::Recycled => return self.spend(price), // an earlier block wrote what is recycled
            // All of a huge page is there once a byte of it is used, so only the ends say anything: the last one, as buffers are
            // filled from the start, and many never as a whole.
            Origin::Precedent if huge > 0 => end - end % huge_page(),
            _ if huge > 0 => return self.spend(price), // they were mapped before
            _ => start,
        };
        self.seen += fresh - huge;
        // Each of n blocks is remembered with the same likelihood, as if by chance.
        let golden = (self.count as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let at = if self.count < SAMPLES { self.count } else { (golden >> 32) as usize % (self.count + 1) };
        if let Some(sample) = self.samples.get_mut(at) {
            *sample = Sample { block: span.block(), start, bytes: end - start };
        }
        self.count += 1;
    }

    /// Whether a block on base pages that is about to be recycled was filled. If it was not, the next ones are not looked at.
    pub(super) fn is_filled(&mut self, span: Span) -> bool {
        if self.skipped > 0 {
            self.skipped -= 1;
            return false;
        }
        let is_filled = written(span.address(), span.bytes()) >= FILLED;
        self.skipped = if is_filled { 0 } else { SKIPPED };
        is_filled
    }

    /// Records that so many bytes came on huge pages.
    pub(super) fn spend(&mut self, huge: usize) {
        self.credit = self.credit.map(|left| left.saturating_sub(huge));
    }

    /// Looks at the remembered blocks that are live. If there are several, not at the one that came last, which the program
    /// may be about to fill.
    fn look(&mut self) {
        let samples = &self.samples[..self.count.min(SAMPLES)];
        let others = if (2..=SAMPLES).contains(&self.count) { &samples[..self.count - 1] } else { samples };
        let (mut asked, mut there) = (0, 0);
        for &Sample { start, bytes, .. } in others.iter().filter(|sample| heap::block_at(sample.block).is_some()) {
            asked += bytes;
            there += written_bytes(start, bytes);
        }
        if asked == 0 {
            self.next = self.seen + FIRST_LOOK; // they were temporaries: nothing is known
            return;
        }
        let is_good = SAMPLE_PAGES * there >= FILLED * asked;
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
    size / SAMPLE_PAGES * written(address, size)
}

/// How many of [`SAMPLE_PAGES`] pages, spread over a range, were written. Reading leaves the zero page, of which the kernel knows.
pub(super) fn written(address: usize, size: usize) -> usize {
    let page = os::page_size();
    let pages: [usize; SAMPLE_PAGES] = std::array::from_fn(|n| {
        let golden = (n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15); // multiples that lie as evenly as can be
        round_down(address + ((u128::from(golden) * size as u128) >> 64) as usize, page)
    });
    let mut nodes = [0; SAMPLE_PAGES];
    match os::nodes_of(&pages, &mut nodes) {
        Ok(()) => nodes.iter().filter(|&&node| node >= 0).count(),
        Err(_) => pages.iter().filter(|&&at| os::resident_pages(at, page).is_ok_and(|there| there > 0)).count(),
    }
}
