//! A region: segments whose units are treated alike, and what is mapped behind them. Guarded by the heap's lock.

use super::claim;
use super::free_lists::Side;
use super::segment::{CLEAN, NONE, Segment, UNMAPPED};
use crate::allocator::Allocator;
use crate::os::{self, Errno};

const MAX_SEGMENTS: usize = 256;
/// From this many bytes on the system is asked beforehand whether it has them.
const PROBE_MIN: usize = 1 << 30;

/// How the pages of a region are meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes of a unit, as a power of two.
    pub unit_shift: u32,
    /// Bytes that are opened at a time; a multiple of the unit.
    pub extent: usize,
    /// Bytes of the huge page to ask for; what is given back is a multiple of it. The base page where none is asked.
    pub page: usize,
    /// Whether huge pages are asked for.
    pub huge: bool,
}

/// Used units, and what was known when they were taken.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub segment: &'static Segment,
    pub start: u32,
    pub len: u32,
    /// Bytes of it that are dirty; the rest reads zero.
    pub dirty: usize,
}

impl Span {
    pub(crate) fn address(&self) -> usize {
        self.segment.address(self.start)
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.len as usize) << self.segment.unit_shift
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
    /// Bytes that are mapped.
    pub mapped: usize,
}

impl Region {
    pub(crate) fn new(shape: Shape) -> Self {
        Self { shape, segments: [None; MAX_SEGMENTS], count: 0, out: 0, dirty: 0, mapped: 0 }
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = &'static Segment> + '_ {
        self.segments[..self.count].iter().copied().flatten()
    }

    /// A span of at least `bytes`, from what is free. Opening what is not mapped may fail.
    pub(crate) fn take(&mut self, bytes: usize, align: usize, sides: &[Side]) -> Result<Option<Span>, Errno> {
        let Some(len) = self.units(bytes) else { return Ok(None) };
        for index in 0..self.count {
            let Some(segment) = self.segments[index] else { continue };
            while let Some((start, dirty)) = segment.take(len, align, sides) {
                let mapped = dirty == len;
                match if mapped { Ok(()) } else { self.open(segment, start, len) } {
                    Ok(()) => {
                        let dirty = (dirty as usize) << self.shape.unit_shift;
                        let span = Span { segment, start, len, dirty };
                        self.out += span.bytes();
                        self.dirty -= dirty;
                        return Ok(Some(span));
                    }
                    // Somebody else's mapping lies in our claim.
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

    fn units(&self, bytes: usize) -> Option<u32> {
        let units = bytes.div_ceil(1 << self.shape.unit_shift);
        u32::try_from(units).ok().filter(|&units| units < NONE >> 3)
    }

    /// Makes room for a span of `bytes`: more units at a segment's top, or another segment.
    pub(crate) fn grow(&mut self, bytes: usize, align: usize, owner: *const dyn Allocator) -> Result<(), Errno> {
        probe(bytes)?;
        let units = self.units(bytes.checked_add(align).ok_or(Errno::NO_MEMORY)?).ok_or(Errno::NO_MEMORY)?;
        for segment in self.segments() {
            if segment.growable.get() && self.raise_top(segment, units).is_ok() {
                return Ok(());
            }
        }
        if self.count == MAX_SEGMENTS {
            return Err(Errno::NO_MEMORY);
        }
        let segment = claim::segment(self.shape, units, self.mapped, owner)?;
        self.segments[self.count] = Some(segment);
        self.count += 1;
        if segment.growable.get() {
            return self.raise_top(segment, units);
        }
        self.mapped += (segment.top.get() as usize) << segment.unit_shift;
        if self.shape.huge {
            let _ = os::advise_huge(segment.base, (segment.top.get() as usize) << segment.unit_shift);
        }
        Ok(())
    }

    fn raise_top(&self, segment: &'static Segment, units: u32) -> Result<(), Errno> {
        let step = (self.shape.extent >> self.shape.unit_shift) as u32;
        let top = segment.top.get();
        let spare = segment.free_at_top().map_or(0, |(_, len)| len);
        let wanted = top.checked_add(units.saturating_sub(spare)).ok_or(Errno::NO_MEMORY)?;
        let raised = wanted.checked_next_multiple_of(step).ok_or(Errno::NO_MEMORY)?;
        if raised > segment.capacity {
            return Err(Errno::NO_MEMORY);
        }
        if raised > top {
            claim::open_records(segment, raised)?;
            segment.top.set(raised);
            segment.give(top, raised - top, 0); // fresh ages are UNMAPPED, which is zero
        } else if let Some((start, _)) = segment.free_at_top() {
            // It stood so deep in its list that it was not looked at.
            let (len, dirty) = segment.unlist(start);
            segment.list(start, len, dirty);
        }
        Ok(())
    }

    /// Lowers segments' tops below large free clean spans, and gives back the memory of their records.
    pub(crate) fn lower_tops(&mut self) {
        const LEAST: usize = 16 << 20;
        let step = (self.shape.extent >> self.shape.unit_shift) as u32;
        for index in 0..self.count {
            let Some(segment) = self.segments[index].filter(|segment| segment.open_by_need) else { continue };
            let Some((start, len)) = segment.free_at_top() else { continue };
            let (top, lowered) = (start + len, start.next_multiple_of(step));
            let bytes = (top.saturating_sub(lowered) as usize) << segment.unit_shift;
            if segment.dirty_units(start) > 0 || bytes == 0 || (bytes < LEAST && lowered > 0) {
                continue;
            }
            let mapped = segment.ages(lowered, top - lowered).iter().filter(|&&age| age != UNMAPPED).count();
            // SAFETY: the units are free and clean, and the lock is held, so nobody uses them (law 8).
            if mapped > 0 && unsafe { os::unmap(segment.address(lowered), bytes) }.is_err() {
                continue;
            }
            self.mapped -= mapped << segment.unit_shift;
            segment.unlist(start);
            segment.ages(lowered, top - lowered).fill(UNMAPPED);
            segment.top.set(lowered);
            if lowered > start {
                segment.list(start, lowered - start, 0);
            }
            claim::empty_records(segment, lowered);
        }
    }

    /// Maps what is not mapped of a used span, a whole extent at a time where the units around are free too.
    fn open(&mut self, segment: &'static Segment, start: u32, len: u32) -> Result<(), Errno> {
        let end = start + len;
        let mut unit = start;
        while unit < end {
            let from = unit + mapped_run(segment.ages(unit, end - unit));
            let run = unmapped_run(segment.ages(from, end - from));
            if run == 0 {
                break;
            }
            let extent = self.extent_around(segment, from, from + run);
            let page = self.page_around(segment, from, from + run);
            let result = self.map_units(segment, extent.0, extent.1);
            if result.is_err() {
                self.map_units(segment, page.0, page.1)?;
            }
            unit = from + run;
        }
        Ok(())
    }

    /// The units from `from` to `to`, widened to multiples of `step` as far as nothing is mapped there.
    fn widen(&self, segment: &'static Segment, from: u32, to: u32, step: usize) -> (u32, u32) {
        let step = (step >> self.shape.unit_shift).max(1) as u32;
        let low = from - from % step;
        let high = to.next_multiple_of(step).min(segment.top.get());
        let unmapped = |age: &&u8| **age == UNMAPPED;
        let before = segment.ages(low, from - low).iter().rev().take_while(unmapped).count() as u32;
        let behind = segment.ages(to, high - to).iter().take_while(unmapped).count() as u32;
        (from - before, to + behind)
    }

    fn extent_around(&self, segment: &'static Segment, from: u32, to: u32) -> (u32, u32) {
        self.widen(segment, from, to, self.shape.extent)
    }

    fn page_around(&self, segment: &'static Segment, from: u32, to: u32) -> (u32, u32) {
        self.widen(segment, from, to, self.shape.page)
    }

    fn map_units(&mut self, segment: &'static Segment, from: u32, to: u32) -> Result<(), Errno> {
        let size = ((to - from) as usize) << self.shape.unit_shift;
        os::map_at(segment.address(from), size)?;
        if self.shape.huge {
            let _ = os::advise_huge(segment.address(from), size); // without it the pages are small, nothing else
        }
        segment.ages(from, to - from).fill(CLEAN);
        self.mapped += size;
        Ok(())
    }

    /// Takes a span back; all of it is dirty from now, freed in `epoch`.
    pub(crate) fn give(&mut self, span: Span, epoch: u8) {
        span.segment.ages(span.start, span.len).fill(epoch);
        self.out -= span.bytes();
        self.dirty += span.bytes();
        span.segment.give(span.start, span.len, span.len);
    }

    /// Lengthens a used span to `bytes` where it stands; bytes of the addition that were dirty and that were clean.
    pub(crate) fn extend(&mut self, span: Span, bytes: usize) -> Option<(usize, usize)> {
        let Span { segment, start, len: old, .. } = span;
        let len = self.units(bytes)?;
        let end = start + old;
        if end == segment.top.get() || segment.free_at_top().is_some_and(|(at, free)| at == end && free < len - old) {
            self.raise_top(segment, len - old).ok()?;
        }
        let dirty = segment.extend(start, len)?;
        if self.open(segment, end, len - old).is_err() {
            segment.cut(start, old);
            segment.give(end, len - old, dirty);
            return None;
        }
        let (added, dirty) = (((len - old) as usize) << segment.unit_shift, (dirty as usize) << segment.unit_shift);
        self.out += added;
        self.dirty -= dirty;
        Some((dirty, added - dirty))
    }
}

/// Ages that are looked at together.
const CHUNK: usize = 256;

/// How many of the first units are mapped.
fn mapped_run(ages: &[u8]) -> u32 {
    let whole = ages.chunks_exact(CHUNK).take_while(|chunk| !chunk.contains(&UNMAPPED)).count() * CHUNK;
    (whole + ages[whole..].iter().take_while(|&&age| age != UNMAPPED).count()) as u32
}

/// How many of the first units are not.
fn unmapped_run(ages: &[u8]) -> u32 {
    let whole = ages.chunks_exact(CHUNK).take_while(|chunk| **chunk == [UNMAPPED; CHUNK]).count() * CHUNK;
    (whole + ages[whole..].iter().take_while(|&&age| age == UNMAPPED).count()) as u32
}

/// Whether the system would map so much at all: records for it would cost a thousandth of it.
fn probe(bytes: usize) -> Result<(), Errno> {
    if bytes >= PROBE_MIN {
        let at = os::map_anywhere(bytes)?;
        // SAFETY: it was mapped on the line above and nobody knows it.
        unsafe { os::unmap(at, bytes)? };
    }
    Ok(())
}
