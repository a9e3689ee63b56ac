//! Purging: returning idle memory to the system.
//!
//! Victims, runs of units, are taken out of the lists of free spans under the region's lock, linked to each other, purged
//! without the lock, and joined again under it. A lock of its own serializes purges, and is held around forks.

use crate::heap::segment::{CLASSES, CLEAN, FIRST_EPOCH, RegionKind, Segment, UNMAPPED, class_of, epochs_since};
use crate::heap::{Heap, Region, Span};
use crate::{heap, os, policy};
use std::cell::Cell;

impl Heap {
    /// Purges victims until `budget` bytes have gone; bytes purged. `now` is the epoch.
    pub(crate) fn purge(&self, victims: Victims, now: u8, budget: usize) -> usize {
        let _purging = self.purging.lock();
        let mut gone = 0;
        for kind in [RegionKind::Huge, RegionKind::Base] {
            let mut region = self.region(kind);
            for index in 0..region.segments.len() {
                let segment = region.segments[index];
                let splits = region.has_huge || victims.parts;
                let mut next = victims.take_out(&mut region, segment, now, budget - budget.min(gone));
                while let Some(start) = next {
                    drop(region);
                    next = segment.linked(start);
                    let run = (start, segment.span_len(start));
                    let age = purge_run(segment, run, splits, !victims.parts);
                    region = self.region(kind);
                    gone += free_run(&mut region, segment, run, age);
                }
            }
        }
        gone
    }

    /// Frees a used span without a block, and purges it at once.
    pub(crate) fn free_purged(&self, span: Span) {
        let _purging = self.purging.lock();
        let Span { segment, start, len } = span;
        segment.set_ages(start, len, FIRST_EPOCH);
        self.region(span.kind()).held.out -= span.bytes();
        let age = purge_run(segment, (start, len), false, true);
        free_run(&mut self.region(span.kind()), segment, (start, len), age);
    }
}

/// Maps the pages of the live block at `address` anew, so that the next user finds nothing of what this one asked for them:
/// advice, protection, locks. Their content is lost. Returns whether that was done.
///
/// # Safety
/// The block is live, and used no more.
pub unsafe fn map_anew(address: usize) -> bool {
    let Some(span) = heap::span_at(address) else { return false };
    // SAFETY: the heap mapped the span, whose block nobody uses (the preloaded library, before it frees the block).
    let done = unsafe { os::map_anew(span.address(), span.bytes()) }.is_ok();
    if done && span.kind() == RegionKind::Huge {
        let _ = os::advise_huge(span.address(), span.bytes()); // without it they are slower, no more
    }
    done
}

/// Purges units, perhaps parts of huge pages, which are split; returns their new age, or `None` if the system refused.
fn purge_run(segment: &Segment, (start, len): (u32, u32), splits: bool, unmaps: bool) -> Option<u8> {
    let (address, size) = (segment.address(start), segment.bytes(len));
    // SAFETY: the units are not in use: they were free, and were taken out under the lock (law 8).
    unsafe {
        if splits {
            os::split_huge(address, size);
        }
        if unmaps && size >= policy::unmap_min() && os::decommit(address, size).is_ok() {
            return Some(UNMAPPED);
        }
        if splits {
            // Or khugepaged would fill what is discarded, until a block takes the huge pages whole: they join their neighbors'
            // mapping. Their content stays, be it anybody's.
            let (low, high) = (segment.huge_below(start), segment.huge_above(start + len).min(segment.capacity()));
            os::unadvise_huge(segment.address(low), segment.bytes(high - low));
        }
        if os::discard(address, size).is_ok() {
            return Some(CLEAN);
        }
        // Locked memory cannot be discarded, but it can be unmapped.
        os::decommit(address, size).is_ok().then_some(UNMAPPED)
    }
}

/// Frees a run of used units, clean ones among them. `age` is what all of them have since a purge; returns the bytes purged.
pub(super) fn free_run(region: &mut Region, segment: &Segment, (start, len): (u32, u32), age: Option<u8>) -> usize {
    if age == Some(UNMAPPED) {
        let mapped = segment.ages(start, len).iter().filter(|age| age.get() != UNMAPPED).count();
        region.held.mapped -= segment.bytes(mapped as u32);
    }
    if let Some(age) = age {
        segment.set_ages(start, len, age);
    }
    let dirty = segment.count_dirty(start, len);
    region.held.dirty += segment.bytes(dirty);
    segment.free(start, len, dirty);
    if age.is_some() { segment.bytes(len) } else { 0 }
}

/// The memory to purge: dirty, and idle for at least `min_epochs`.
#[derive(Clone, Copy)]
pub(crate) struct Victims {
    pub min_epochs: u8,
    /// Whether it is idle parts of huge pages, which are split. Else it is whole huge pages, and base pages.
    pub parts: bool,
}

impl Victims {
    /// Takes victims out of the free spans of a segment, the largest spans first, of `budget` bytes or as much more as
    /// belongs to a page. Returns the first; each is linked to the next.
    fn take_out(self, region: &mut Region, segment: &Segment, now: u8, budget: usize) -> Option<u32> {
        let Self { min_epochs, parts } = self;
        if region.held.dirty == 0 || budget == 0 || (parts && region.kind == RegionKind::Base) {
            return None;
        }
        let page = if parts { 1 } else { (region.kind.page() >> segment.unit_shift) as u32 };
        let is_old = |age: u8| age < FIRST_EPOCH || epochs_since(age, now) >= min_epochs;
        let is_victim = |units: &[Cell<u8>]| {
            units.iter().all(|age| is_old(age.get())) && units.iter().any(|age| age.get() >= FIRST_EPOCH)
        };
        let (mut first, mut left) = (None, budget);
        for class in (class_of(page)..CLASSES).rev() {
            let mut listed = segment.heads[1][class].unit();
            while let Some(span) = listed.filter(|_| left > 0) {
                listed = segment.next_listed(span); // first: what is left of the span is listed anew
                let (mut at, end) = (span, span + segment.span_len(span));
                while left > 0
                    && let Some((start, len)) = first_run(segment, (at, end), page, is_victim)
                {
                    let needed = left.div_ceil(segment.unit()).min(len as usize) as u32;
                    let len = needed.next_multiple_of(page).min(len);
                    segment.carve(at, start, len);
                    segment.link(start, first);
                    region.held.dirty -= segment.bytes(segment.count_dirty(start, len));
                    first = Some(start);
                    left = left.saturating_sub(segment.bytes(len));
                    at = start + len; // the rest behind is a free span of its own now
                }
            }
        }
        first
    }
}

/// The first run of whole pages between two units of a free span, all of which are victims.
fn first_run(
    segment: &Segment,
    (from, to): (u32, u32),
    page: u32,
    is_victim: impl Fn(&[Cell<u8>]) -> bool,
) -> Option<(u32, u32)> {
    let first = from.next_multiple_of(page);
    let whole = (to - to % page).checked_sub(first).filter(|&units| units > 0)?;
    let mut pages = segment.ages(first, whole).chunks_exact(page as usize);
    let at = first + pages.position(&is_victim)? as u32 * page;
    let more = pages.take_while(|units| is_victim(units)).count() as u32;
    Some((at, (1 + more) * page))
}
