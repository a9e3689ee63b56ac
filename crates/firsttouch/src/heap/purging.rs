//! Returning idle memory to the system.
//!
//! Victims, runs of units, are taken out of the free spans under the heap's lock, purged without it, and joined again under
//! it. A lock of its own serializes purges, and is held around forks.

use crate::heap::Heap;
use crate::heap::growing::{Region, Span, mapped_run, unmapped_run};
use crate::heap::segment::{CLEAN, CLEAN_HUGE, FIRST_EPOCH, Kind, Segment, State, UNMAPPED, ticks_since};
use crate::layout::{round_down, round_up};
use crate::{heap, os};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

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
        look_again();
        if keeps_mappings() { 0 } else { self.purge_victims(Victims::Clean, usize::MAX).iter().sum() }
    }

    fn purge_victims(&self, victims: Victims, budget: usize) -> [usize; 2] {
        look_again();
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
    let may_unmap = segment.claim.has_slots() && !keeps_mappings();
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
    region.leaving -= (dirty as usize) << segment.unit_shift();
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

/// The number of runs that are taken at a time.
const BATCH: usize = 64;

/// The runs that a purge took last, and the ages they get. They are kept with the heap: a thread that frees may have a small
/// stack.
pub(crate) struct Batch {
    pub(super) runs: [Option<Run>; BATCH],
    pub(super) ages: [Option<u8>; BATCH],
}

impl Batch {
    pub(crate) const EMPTY: Self = Self { runs: [None; BATCH], ages: [None; BATCH] };
}
/// If address space is short, clean memory is unmapped from this many bytes on.
const UNMAP_CLEAN: usize = 64 << 10;

/// What is purged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Victims {
    /// Dirty memory that has been idle for so many ticks.
    Idle(u8),
    /// The same in parts of huge pages.
    IdleParts(u8),
    /// Clean memory: address space is wanted.
    Clean,
}

/// Where a walk over the spans is: in which region, that for huge pages first, in which of its segments, at which span,
/// from which of its units on nothing was looked at, and how many units before that are dirty.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub region: usize,
    segment: usize,
    span: u32,
    unit: u32,
    dirty: u32,
}

impl Place {
    pub(super) const START: Self = Self { region: 1, segment: 0, span: 0, unit: 0, dirty: 0 };
}

#[derive(Clone, Copy)]
pub(crate) struct Run {
    place: Place,
    pub segment: &'static Segment,
    pub start: u32,
    pub len: u32,
    /// Whether it may be a part of a huge page, which has to be split.
    pub is_part: bool,
}

impl Run {
    /// Where the walk goes on behind it, while it is still out of the free spans: at the span that it will be joined to,
    /// with its dirty units if it `stays` as it is.
    pub(super) fn place(&self, stays: bool) -> Place {
        let (segment, start) = (self.segment, self.start);
        let span = segment.free_before(start);
        let before = if span < start { segment.dirty_units(span) } else { 0 };
        let its = if stays { segment.count_dirty(start, self.len) } else { 0 };
        Place { span, unit: start + self.len, dirty: before + its, ..self.place }
    }
}

impl Victims {
    /// Takes runs out of the free spans from a place on into `runs`, of `budget` bytes or as much more as belongs to a page.
    pub(super) fn collect(
        self,
        regions: &mut [Region; 2],
        from: Place,
        now: u8,
        budget: usize,
        runs: &mut [Option<Run>; BATCH],
    ) {
        runs.fill(None);
        let (mut count, mut bytes) = (0, 0);
        for index in (0..=from.region).rev() {
            let region = &mut regions[index];
            let from = if index == from.region { from } else { Place { region: index, ..Place::START } };
            if region.dirty == 0 && self != Self::Clean {
                continue;
            }
            let parts = matches!(self, Self::IdleParts(_));
            if parts && !region.shape.huge {
                continue;
            }
            let is_part = parts || region.has_huge;
            let page_units = if parts { 1 } else { (region.shape.page >> region.shape.unit_shift).max(1) as u32 };
            for at in from.segment..region.count {
                let Some(segment) = region.segments[at] else { continue };
                let place =
                    if at == from.segment { from } else { Place { segment: at, region: index, ..Place::START } };
                if self == Self::Clean && !segment.claim.has_slots() {
                    continue;
                }
                let mut given = 0;
                segment.walk_from(place.span, |span, len, state| {
                    let (mut span, end) = (span, span + len);
                    let mut unit = place.unit.clamp(span, end);
                    let mut dirty = if unit > span { place.dirty } else { 0 }; // of the span of the place, the first one
                    let mut look = state == State::Free && (segment.dirty_units(span) > 0 || self == Self::Clean);
                    while look && span < end && count < BATCH && bytes < budget {
                        let run = match self {
                            Self::Idle(min_ticks) | Self::IdleParts(min_ticks) => {
                                idle_run(segment, unit, end - unit, page_units, now, min_ticks)
                            }
                            Self::Clean => clean_run(segment, unit, end - unit, page_units),
                        };
                        look = run.is_some();
                        if let Some((start, len)) = run {
                            let room = (budget - bytes).div_ceil(segment.unit()).min(len as usize) as u32;
                            let len = room.next_multiple_of(page_units).min(len);
                            segment.carve_behind(span, (unit, dirty), start, len);
                            runs[count] = Some(Run { place, segment, start, len, is_part });
                            count += 1;
                            bytes += (len as usize) << segment.unit_shift();
                            given += segment.count_dirty(start, len) as usize;
                            span = start + len; // the rest behind is a free span of its own now
                            (unit, dirty) = (span, 0);
                        }
                    }
                    count < BATCH && bytes < budget
                });
                region.dirty -= given << segment.unit_shift();
                region.leaving += given << segment.unit_shift();
                if count == BATCH || bytes >= budget {
                    return;
                }
            }
        }
    }
}

/// The first run of units, in whole pages, that are all free, none younger than `min_ticks`, and some dirty.
fn idle_run(segment: &Segment, span: u32, len: u32, page: u32, now: u8, min_ticks: u8) -> Option<(u32, u32)> {
    let old = |age: u8| age < FIRST_EPOCH || ticks_since(age, now) >= min_ticks;
    let victim = |units: &[u8]| units.iter().all(|&age| old(age)) && units.iter().any(|&age| age >= FIRST_EPOCH);
    run_of(segment, span, len, page, 1, victim)
}

/// The first run of clean units, in whole pages, that is worth being unmapped.
fn clean_run(segment: &Segment, span: u32, len: u32, page: u32) -> Option<(u32, u32)> {
    let least = (UNMAP_CLEAN >> segment.unit_shift()).max(1) as u32;
    run_of(segment, span, len, page, least, |units| units.iter().all(|&age| matches!(age, CLEAN | CLEAN_HUGE)))
}

/// The first run of at least `least` units, in whole pages, all of which are victims.
fn run_of(
    segment: &Segment,
    span: u32,
    len: u32,
    page: u32,
    least: u32,
    victim: impl Fn(&[u8]) -> bool,
) -> Option<(u32, u32)> {
    let first_page = round_up(span as usize, page as usize)? - span as usize;
    let whole = round_down(len as usize + span as usize, page as usize).checked_sub(span as usize)?;
    let mut pages = segment.ages(span, len).get(first_page..whole)?.chunks_exact(page as usize);
    let mut at = span + first_page as u32;
    loop {
        at += pages.position(&victim)? as u32 * page;
        let more = pages.by_ref().take_while(|units| victim(units)).count() as u32;
        let run = (1 + more) * page;
        if run >= least {
            return Some((at, run));
        }
        at += run + page; // the page that ended the run
    }
}

/// Whether the process has reached the limit. What is unmapped then cannot be mapped again, so pages are discarded and
/// their mappings stay.
static MAPPINGS_SHORT: AtomicBool = AtomicBool::new(false);

/// To be called when the system refused memory: checks whether the number of mappings was the reason.
pub(crate) fn look_at_mappings() {
    MAPPINGS_SHORT.store(os::mappings_are_short(), Relaxed);
}

/// To be called before memory goes back: checks whether the number of mappings still is at the limit.
pub(crate) fn look_again() {
    if keeps_mappings() {
        look_at_mappings();
    }
}

/// Whether mappings have to be kept.
pub(crate) fn keeps_mappings() -> bool {
    MAPPINGS_SHORT.load(Relaxed)
}
