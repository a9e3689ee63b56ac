//! Which idle memory is given back: runs of units, taken out of the free spans under the heap's lock.

use crate::heap::ages::{CLEAN, CLEAN_HUGE, FIRST_EPOCH, ticks_since};
use crate::heap::region::Region;
use crate::heap::segment::{Segment, State};
use crate::layout::{round_down, round_up};

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
