//! Returning idle memory to the system.
//!
//! Victims are taken out of the free spans under the heap's lock, purged without it, and joined again under it. A lock
//! of its own serializes purges, and is held around forks.

use crate::heap::ages::{CLEAN, FIRST_EPOCH, UNMAPPED};
use crate::heap::heap::{self, Heap};
use crate::heap::mapping_limit;
use crate::heap::open::{mapped_run, unmapped_run};
use crate::heap::region::{Region, Span};
use crate::heap::segment::{Segment, State};
use crate::heap::shape::Kind;
use crate::heap::victims::{Batch, Place, Run, Victims};
use crate::os;

/// From this many bytes on memory is unmapped: it then costs no address space, and locked memory can go too. Below,
/// holes would cost mappings, so the pages are discarded and the mapping stays.
const UNMAP: usize = 1 << 20;

impl Heap {
    /// Gives back free memory that has been idle for at least `min_ticks`, until `budget` bytes have gone; bytes given
    /// back by each region.
    pub(crate) fn purge(&self, min_ticks: u8, budget: usize) -> [usize; 2] {
        self.purge_victims(Victims::Idle(min_ticks), budget)
    }

    /// The same of huge pages that are in use in part: they are split.
    pub(crate) fn purge_parts(&self, min_ticks: u8) -> [usize; 2] {
        self.purge_victims(Victims::IdleParts(min_ticks), usize::MAX)
    }

    /// Unmaps free memory that is mapped and clean, as address space has run short; bytes of it.
    pub(crate) fn unmap_clean(&self) -> usize {
        mapping_limit::look_again();
        if mapping_limit::keeps_mappings() { 0 } else { self.purge_victims(Victims::Clean, usize::MAX).iter().sum() }
    }

    fn purge_victims(&self, victims: Victims, budget: usize) -> [usize; 2] {
        mapping_limit::look_again();
        let mut batch = self.purging.lock();
        let Batch { runs, ages } = &mut *batch;
        let (mut gone, mut total, mut place) = ([0; 2], 0, Place::START);
        let mut regions = self.regions();
        while total < budget {
            victims.collect(&mut regions, place, self.epoch(), budget - total, runs);
            drop(regions);
            for (run, age) in runs.iter().flatten().zip(&mut *ages) {
                *age = give_back(run.segment, (run.start, run.len), run.is_part, victims);
            }
            regions = self.regions();
            let before = total;
            for (run, age) in runs.iter().flatten().zip(&*ages) {
                place = run.place(age.is_none());
                let its = settle(&mut regions[place.region], run, *age);
                gone[place.region] += its;
                total += its;
            }
            if total == before {
                break;
            }
        }
        gone
    }

    /// Takes a used span and gives its pages back at once.
    pub(crate) fn give_back(&self, kind: Kind, span: Span) {
        let _purging = self.purging.lock();
        let Span { segment, start, len, .. } = span;
        let age = give_back(segment, (start, len), false, Victims::Idle(0));
        let mut regions = self.regions();
        let region = &mut regions[kind as usize];
        region.out -= span.bytes();
        if age == Some(UNMAPPED) {
            region.mapped -= span.bytes(); // all of a used span is mapped
        }
        let dirty = if age.is_none() { len } else { 0 };
        region.dirty += (dirty as usize) << segment.unit_shift();
        match age {
            Some(age) => segment.empty(start, len, age),
            None => segment.ages(start, len).fill(FIRST_EPOCH),
        }
        segment.give(start, len, dirty);
    }

    /// Discards the free parts of the huge pages that a used span shares, below and above it; returns the bytes that
    /// were dirty.
    pub(crate) fn empty_beside(&self, span: Span, below: bool, above: bool) -> usize {
        let Span { segment, start, len, .. } = span;
        let end = start + len;
        let mut regions = self.regions();
        let mut gone = 0;
        if below && start > 0 && segment.state(start - 1) == State::Free {
            let free = start - segment.record(start - 1).len.get();
            gone += empty_part(segment, free, segment.huge_below(start).max(free), start);
        }
        if above && end < segment.top.get() && segment.state(end) == State::Free {
            gone += empty_part(segment, end, end, segment.huge_above(end).min(end + segment.record(end).len.get()));
        }
        regions[usize::from(segment.huge)].dirty -= gone;
        gone
    }
}

/// Maps the pages of the live block at `address` anew, so that the next user finds nothing of what this one asked for them:
/// advice, protection, locks. Their content is lost. Returns whether that was done.
///
/// # Safety
/// The block is live, and used no more.
pub unsafe fn map_anew(address: usize) -> bool {
    let Some((kind, span)) = heap::span_at(address) else { return false };
    // SAFETY: the heap mapped the span, whose block nobody uses (the preloaded library, before it frees the block).
    let done = unsafe { os::map_anew(span.address(), span.bytes()) }.is_ok();
    if done && kind == Kind::Huge {
        let _ = os::advise_huge(span.address(), span.bytes()); // without it they are slower, no more
    }
    done
}

/// Gives back units of the free span at `span`; bytes that were dirty. The caller holds the heap's lock.
fn empty_part(segment: &Segment, span: u32, from: u32, to: u32) -> usize {
    let mut at = from;
    while at < to {
        let first = at + unmapped_run(segment.ages(at, to - at));
        let run = mapped_run(segment.ages(first, to - first));
        let bytes = (run as usize) << segment.unit_shift();
        // SAFETY: the units are free and the lock is held, so they are not in use (law 8).
        if run > 0 && unsafe { os::discard(segment.address(first), bytes) }.is_ok() {
            segment.empty(first, run, CLEAN);
        }
        at = first + run;
    }
    let (len, before) = segment.unlist(span);
    let dirty = segment.count_dirty(span, len);
    segment.list(span, len, dirty);
    ((before - dirty) as usize) << segment.unit_shift()
}

/// Purges at least `bytes` of the free memory of some heaps if there is as much, the longest idle first; returns the
/// bytes purged in each region.
pub(crate) fn purge_oldest<'a>(heaps: impl Iterator<Item = &'a Heap> + Clone, bytes: usize) -> [usize; 2] {
    let mut gone = [0; 2];
    for min_ticks in [30, 10, 5, 3, 2, 1, 0] {
        for heap in heaps.clone() {
            let total = gone[0] + gone[1];
            if total < bytes {
                gone = add(gone, heap.purge(min_ticks, bytes - total));
            }
        }
    }
    gone
}

/// Adds up what both regions purged.
pub(crate) fn add(one: [usize; 2], other: [usize; 2]) -> [usize; 2] {
    [one[0] + other[0], one[1] + other[1]]
}

/// Purges units; returns their new age, or `None` if the system refused.
fn give_back(segment: &Segment, (start, len): (u32, u32), is_part: bool, victims: Victims) -> Option<u8> {
    let (address, size) = (segment.address(start), (len as usize) << segment.unit_shift());
    let may_unmap = segment.claim.has_slots() && !mapping_limit::keeps_mappings();
    // SAFETY: the units are not in use: they were free, and were taken out under the lock (law 8).
    unsafe {
        if victims == Victims::Clean {
            return os::unmap(address, size).is_ok().then_some(UNMAPPED);
        }
        if is_part {
            os::split_huge(address, size);
        }
        let unmaps = may_unmap && !matches!(victims, Victims::IdleParts(_));
        if unmaps && size >= UNMAP && os::unmap(address, size).is_ok() {
            return Some(UNMAPPED);
        }
        if is_part {
            leave_split(segment, start, start + len);
        }
        if os::discard(address, size).is_ok() {
            return Some(CLEAN);
        }
        // Locked memory cannot be discarded, but it can be unmapped.
        (may_unmap && os::unmap(address, size).is_ok()).then_some(UNMAPPED)
    }
}

/// Takes the advice away from the huge pages that contain the units, or khugepaged would fill what is discarded, until a
/// block takes them whole. They join their neighbours' mapping. Their content stays, be it anybody's.
fn leave_split(segment: &Segment, from: u32, to: u32) {
    let (low, high) = (segment.huge_below(from), segment.huge_above(to).min(segment.capacity()));
    os::unadvise_huge(segment.address(low), ((high - low) as usize) << segment.unit_shift());
}

/// Makes the units free again; returns the bytes purged.
fn settle(region: &mut Region, run: &Run, age: Option<u8>) -> usize {
    let segment = run.segment;
    let size = (run.len as usize) << segment.unit_shift();
    let dirty = segment.count_dirty(run.start, run.len);
    region.has_split |= run.is_part && region.shape.huge;
    let Some(age) = age else {
        region.dirty += (dirty as usize) << segment.unit_shift();
        segment.give(run.start, run.len, dirty);
        return 0;
    };
    if age == UNMAPPED {
        let mapped = segment.ages(run.start, run.len).iter().filter(|&&age| age != UNMAPPED).count();
        region.mapped -= mapped << segment.unit_shift();
    }
    segment.empty(run.start, run.len, age);
    segment.give(run.start, run.len, 0);
    size
}
