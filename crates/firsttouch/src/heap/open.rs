//! Mapping units on demand, a whole extent at a time if the units around are free too.

use crate::heap::ages::{CLEAN, CLEAN_HUGE, UNMAPPED};
use crate::heap::region::Region;
use crate::heap::segment::Segment;
use crate::heap::shape::Fresh;
use crate::os::{self, Errno};

impl Region {
    /// Maps what is not mapped of a used span, a whole extent at a time if the units around are free too.
    pub(crate) fn open(&mut self, segment: &'static Segment, start: u32, len: u32, fresh: Fresh) -> Result<(), Errno> {
        self.open_above(segment, segment.free_before(start), (start, len), fresh)
    }

    /// Maps a part of a used span in the same way, and nothing below `floor`.
    pub(crate) fn open_above(
        &mut self,
        segment: &'static Segment,
        floor: u32,
        (start, len): (u32, u32),
        fresh: Fresh,
    ) -> Result<(), Errno> {
        let end = start + len;
        // Holders of used spans change the ages without the lock, so only those of free spans are read.
        let around = (floor, segment.free_behind(end));
        let mut unit = start;
        while unit < end {
            let from = unit + mapped_run(segment.ages(unit, end - unit));
            let run = unmapped_run(segment.ages(from, end - from));
            if run == 0 {
                break;
            }
            let run = (from, from + run);
            let extent = match fresh {
                Fresh::Huge => (segment.huge_below(run.0), segment.huge_above(run.1)),
                _ => self.multiples(run, self.shape.extent),
            };
            let huge = |low: u32, high: u32| match fresh {
                Fresh::Base => (low, low),
                Fresh::Huge => (segment.huge_above(low), segment.huge_below(high)),
                Fresh::Inner => (segment.huge_above(start + 1).max(low), segment.huge_below(end).min(high)),
            };
            let (low, high) = widen(segment, run, around, extent);
            if self.map_units(segment, (low, high), huge(low, high)).is_err() {
                let (low, high) = widen(segment, run, around, self.multiples(run, self.shape.page));
                self.map_units(segment, (low, high), huge(low, high))?;
            }
            unit = run.1;
        }
        Ok(())
    }

    /// The units from `from` to `to`, widened to multiples of `step` bytes from the segment's first unit.
    fn multiples(&self, (from, to): (u32, u32), step: usize) -> (u32, u32) {
        let step = (step >> self.shape.unit_shift).max(1) as u32;
        (from - from % step, to.next_multiple_of(step))
    }

    /// Maps units, those of `huge` on huge pages if it is not empty. A refusal of these only means base pages.
    fn map_units(&mut self, segment: &'static Segment, (from, to): (u32, u32), huge: (u32, u32)) -> Result<(), Errno> {
        let size = ((to - from) as usize) << self.shape.unit_shift;
        os::map_at(segment.address(from), size)?;
        segment.ages(from, to - from).fill(CLEAN);
        if self.advise(segment, huge.0, huge.1) {
            segment.ages(huge.0, huge.1 - huge.0).fill(CLEAN_HUGE);
            self.has_huge |= !self.shape.huge;
        }
        self.has_split |= self.shape.huge && huge != (from, to);
        self.mapped += size;
        Ok(())
    }

    /// Asks for huge pages for those that lie in some units as a whole, which may be mapped without.
    pub(crate) fn advise_clean(&self, segment: &Segment, (from, to): (u32, u32)) {
        let (low, high) = (segment.huge_above(from), segment.huge_below(to));
        if self.advise(segment, low, high) {
            let clean = segment.ages(low, high - low).iter_mut().filter(|age| **age == CLEAN);
            clean.for_each(|age| *age = CLEAN_HUGE);
        }
    }

    /// Asks for huge pages for some units, if there are any.
    pub(crate) fn advise(&self, segment: &Segment, from: u32, to: u32) -> bool {
        from < to && os::advise_huge(segment.address(from), ((to - from) as usize) << self.shape.unit_shift).is_ok()
    }
}

/// A run of units, widened towards an extent within bounds as far as nothing is mapped there.
fn widen(
    segment: &'static Segment,
    (from, to): (u32, u32),
    (floor, ceiling): (u32, u32),
    extent: (u32, u32),
) -> (u32, u32) {
    let (low, high) = (extent.0.max(floor), extent.1.min(ceiling).max(to));
    let unmapped = |age: &&u8| **age == UNMAPPED;
    let before = segment.ages(low, from - low).iter().rev().take_while(unmapped).count() as u32;
    let behind = segment.ages(to, high - to).iter().take_while(unmapped).count() as u32;
    (from - before, to + behind)
}

/// Number of ages that are compared at a time.
const CHUNK: usize = 256;

/// Number of mapped units before the first that is not.
pub(crate) fn mapped_run(ages: &[u8]) -> u32 {
    let whole = ages.chunks_exact(CHUNK).take_while(|chunk| !chunk.contains(&UNMAPPED)).count() * CHUNK;
    (whole + ages[whole..].iter().take_while(|&&age| age != UNMAPPED).count()) as u32
}

/// Number of unmapped units before the first that is mapped.
pub(crate) fn unmapped_run(ages: &[u8]) -> u32 {
    let whole = ages.chunks_exact(CHUNK).take_while(|chunk| **chunk == [UNMAPPED; CHUNK]).count() * CHUNK;
    (whole + ages[whole..].iter().take_while(|&&age| age == UNMAPPED).count()) as u32
}
