//! A region: segments with pages of one kind, and the memory mapped in them. Guarded by the heap's lock.
//!
//! Units are mapped on demand, a whole extent at a time if the units around are free too. The top of a segment, where its
//! units with records end, is raised when nothing free fits.

use crate::allocator::Allocator;
use crate::heap::claim;
use crate::heap::segment::Side;
use crate::heap::segment::{CLEAN, CLEAN_HUGE, Fresh, NONE, PageKind, Segment, Shape, UNMAPPED, huge_page};
use crate::os::{self, Errno};
use crate::pages::mapping::probe;

pub(crate) const MAX_SEGMENTS: usize = 256;

/// A span of used units, and what was known about it when it was allocated.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub segment: &'static Segment,
    pub start: u32,
    pub len: u32,
    /// Dirty bytes; the rest reads zero.
    pub dirty: usize,
}

impl Span {
    pub(crate) fn address(&self) -> usize {
        self.segment.address(self.start)
    }

    /// Where its block begins.
    pub(crate) fn block(&self) -> usize {
        self.address() + self.segment.occupant(self.start).offset()
    }

    /// Bytes from there to its end.
    pub(crate) fn usable(&self) -> usize {
        self.address() + self.bytes() - self.block()
    }

    pub(crate) fn kind(&self) -> PageKind {
        if self.segment.huge { PageKind::Huge } else { PageKind::Base }
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.len as usize) << self.segment.unit_shift()
    }
}

pub(crate) struct Region {
    pub shape: Shape,
    pub segments: [Option<&'static Segment>; MAX_SEGMENTS],
    pub count: usize,
    /// Bytes handed out.
    pub out: usize,
    /// Bytes that are free and dirty.
    pub dirty: usize,
    /// Dirty bytes that a purge has taken out of what is free, and that the system may still hold.
    pub leaving: usize,
    /// Bytes that are mapped.
    pub mapped: usize,
    /// Whether a part of a region for base pages was advised huge.
    pub has_huge: bool,
    /// Whether parts of a region for huge pages are not advised huge: those that were split, and those that came on base
    /// pages.
    pub has_split: bool,
}

impl Region {
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            shape,
            segments: [None; MAX_SEGMENTS],
            count: 0,
            out: 0,
            dirty: 0,
            leaving: 0,
            mapped: 0,
            has_huge: false,
            has_split: false,
        }
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = &'static Segment> + '_ {
        self.segments[..self.count].iter().copied().flatten()
    }

    /// Allocates a span of at least `bytes` from what is free. Mapping what is not mapped may fail.
    pub(crate) fn take(
        &mut self,
        bytes: usize,
        align: usize,
        sides: &[Side],
        fresh: Fresh,
    ) -> Result<Option<Span>, Errno> {
        let Some(len) = self.units(bytes) else { return Ok(None) };
        for index in 0..self.count {
            let Some(segment) = self.segments[index] else { continue };
            while let Some((start, dirty)) = segment.take(len, place(&self.shape, align, fresh), sides) {
                let mapped = dirty == len;
                match if mapped { Ok(()) } else { self.open(segment, start, len, fresh) } {
                    Ok(()) => {
                        if !mapped && self.has_split && fresh != Fresh::Base {
                            self.advise_clean(segment, (start + u32::from(fresh == Fresh::Inner), start + len));
                        }
                        let dirty = (dirty as usize) << self.shape.unit_shift;
                        let span = Span { segment, start, len, dirty };
                        self.out += span.bytes();
                        self.dirty -= dirty;
                        return Ok(Some(span));
                    }
                    // The claim contains a foreign mapping.
                    Err(Errno::EXISTS) => segment.keep_out(start, len),
                    Err(error) => {
                        segment.give(start, len, dirty);
                        return Err(error);
                    }
                }
            }
        }
        Ok(None)
    }

    /// Allocates a span of at least `bytes` that is free and dirty from end to end, so that no page of it is faulted in.
    pub(crate) fn take_resident(&mut self, bytes: usize, align: usize) -> Option<Span> {
        let len = self.units(bytes)?;
        for segment in self.segments[..self.count].iter().copied().flatten() {
            let Some((start, dirty)) = segment.take(len, (align, 0), &[Side::Dirty]) else { continue };
            if dirty < len {
                segment.give(start, len, dirty);
                continue;
            }
            let span = Span { segment, start, len, dirty: (len as usize) << self.shape.unit_shift };
            self.out += span.bytes();
            self.dirty -= span.bytes();
            return Some(span);
        }
        None
    }

    pub(crate) fn units(&self, bytes: usize) -> Option<u32> {
        let units = bytes.div_ceil(1 << self.shape.unit_shift);
        u32::try_from(units).ok().filter(|&units| units < NONE >> 3)
    }

    /// Frees a span; all of it is dirty now, freed in `epoch`.
    pub(crate) fn give(&mut self, span: Span, epoch: u8) {
        span.segment.ages(span.start, span.len).fill(epoch);
        self.out -= span.bytes();
        self.dirty += span.bytes();
        span.segment.give(span.start, span.len, span.len);
    }

    /// Extends a used span to `bytes` in place. Returns the dirty and the clean bytes of the addition.
    pub(crate) fn extend(&mut self, span: Span, bytes: usize, fresh: Fresh) -> Option<(usize, usize)> {
        let Span { segment, start, len: old, .. } = span;
        let len = self.units(bytes)?;
        let end = start + old;
        if end == segment.top.get() || segment.free_at_top().is_some_and(|(at, free)| at == end && free < len - old) {
            self.raise_top(segment, len - old, fresh).ok()?;
        }
        let dirty = segment.extend(start, len)?;
        if self.open_above(segment, end, (end, len - old), fresh).is_err() {
            segment.cut(start, old);
            segment.give(end, len - old, dirty);
            return None;
        }
        let (added, dirty) = (((len - old) as usize) << segment.unit_shift(), (dirty as usize) << segment.unit_shift());
        self.out += added;
        self.dirty -= dirty;
        Some((dirty, added - dirty))
    }
}

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
        os::commit(segment.address(from), size)?;
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

/// Where a block with such pages has to lie: so many bytes before a multiple of a number. If only the huge pages inside are
/// wanted, one begins right behind the first unit, so that hardly more than that has base pages.
fn place(shape: &Shape, align: usize, fresh: Fresh) -> (usize, usize) {
    let unit = 1 << shape.unit_shift;
    if fresh == Fresh::Inner && shape.huge && align <= unit { (huge_page(), unit) } else { (align, 0) }
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

/// From this many bytes on the system is asked first whether it has the memory.
const PROBE_MIN: usize = 1 << 30;

impl Region {
    /// Makes room for a span of `bytes`: more units at a segment's top, or another segment.
    pub(crate) fn grow(
        &mut self,
        bytes: usize,
        align: usize,
        fresh: Fresh,
        owner: *const dyn Allocator,
    ) -> Result<(), Errno> {
        if bytes >= PROBE_MIN {
            probe(bytes)?; // its records would take a thousandth of it
        }
        let (align, _) = place(&self.shape, align, fresh);
        let units = self.units(bytes.checked_add(align).ok_or(Errno::NO_MEMORY)?).ok_or(Errno::NO_MEMORY)?;
        let mut refused = None;
        for segment in self.segments().filter(|segment| segment.claim.has_slots()) {
            match self.raise_top(segment, units, fresh) {
                Ok(()) => return Ok(()),
                Err(Errno::EXISTS) => {}
                Err(error) if self.raised(segment, units, fresh).is_some() => refused = Some(error),
                Err(_) => {}
            }
        }
        // Where memory for records is short, another segment would be another one without.
        if let Some(error) = refused {
            return Err(error);
        }
        if self.count == MAX_SEGMENTS {
            return Err(Errno::NO_MEMORY);
        }
        let segment = claim::segment(self.shape, units, self.mapped, owner)?;
        self.segments[self.count] = Some(segment);
        self.count += 1;
        if segment.claim.has_slots() {
            return self.raise_top(segment, units, fresh);
        }
        self.mapped += (segment.top.get() as usize) << segment.unit_shift();
        self.has_split |= self.shape.huge; // all is mapped, and each span is advised as it is taken
        Ok(())
    }

    /// The top that a segment needs for a span of `units`, if it has the capacity.
    fn raised(&self, segment: &Segment, units: u32, fresh: Fresh) -> Option<u32> {
        let step = (self.shape.extent >> self.shape.unit_shift) as u32;
        let spare = segment.free_at_top().map_or(0, |(_, len)| len);
        let wanted = segment.top.get().checked_add(units.saturating_sub(spare))?;
        let raised = wanted.checked_next_multiple_of(step)?;
        let whole = segment.huge_above(raised);
        let raised = if fresh == Fresh::Huge && whole <= segment.capacity() { whole } else { raised };
        (raised <= segment.capacity()).then_some(raised)
    }

    pub(crate) fn raise_top(&self, segment: &'static Segment, units: u32, fresh: Fresh) -> Result<(), Errno> {
        let top = segment.top.get();
        let raised = self.raised(segment, units, fresh).ok_or(Errno::NO_MEMORY)?;
        if raised > top {
            claim::open_records(segment, raised)?;
            segment.top.set(raised);
            segment.give(top, raised - top, 0); // fresh ages are UNMAPPED, which is zero
        } else if let Some((start, _)) = segment.free_at_top() {
            // It was too deep in its list to be examined.
            let (len, dirty) = segment.unlist(start);
            segment.list(start, len, dirty);
        }
        Ok(())
    }
}
