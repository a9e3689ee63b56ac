//! A region: segments with pages of one kind, and the memory mapped in them. Guarded by the heap's lock.
//!
//! Units are mapped on demand, a whole extent at a time if the units around are free too. The top of a segment, where its
//! units with records end, is raised when nothing free fits.

use crate::allocator::Allocator;
use crate::heap::claim;
use crate::heap::segment::{CLEAN, CLEAN_HUGE, Fresh, NONE, PageKind, Segment, UNMAPPED, huge_page};
use crate::os::{self, Errno};

const MAX_SEGMENTS: usize = 256;
/// From this many bytes on the system is asked first whether it has the memory.
const PROBE_MIN: usize = 1 << 30;

/// A span of used units.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub segment: &'static Segment,
    pub start: u32,
    pub len: u32,
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
        self.segment.kind
    }

    pub(crate) fn bytes(&self) -> usize {
        self.segment.bytes(self.len)
    }
}

pub(crate) struct Region {
    pub kind: PageKind,
    /// The node whose threads it serves.
    node: u8,
    /// With room for all that it may have, as nothing is allocated under the lock.
    pub segments: Vec<&'static Segment>,
    /// Bytes handed out.
    pub out: usize,
    /// Bytes that are free and dirty.
    pub dirty: usize,
    /// Bytes that are mapped.
    pub mapped: usize,
    /// Whether a part of a region for base pages was advised huge.
    pub has_huge: bool,
}

impl Region {
    pub(crate) fn new(kind: PageKind, node: u8) -> Self {
        let segments = Vec::with_capacity(MAX_SEGMENTS);
        Self { kind, node, segments, out: 0, dirty: 0, mapped: 0, has_huge: false }
    }

    fn units(&self, bytes: usize) -> Option<u32> {
        u32::try_from(bytes.div_ceil(self.kind.unit())).ok().filter(|&units| units < NONE >> 1)
    }

    /// Allocates a span of at least `bytes` from what is free, part of which is dirty or, `may_be_clean`, nothing; also returns
    /// how many bytes are dirty, while the rest reads zero.
    /// Mapping what is not mapped may fail.
    pub(crate) fn take(
        &mut self,
        bytes: usize,
        align: usize,
        may_be_clean: bool,
        fresh: Fresh,
    ) -> Result<Option<(Span, usize)>, Errno> {
        let Some(len) = self.units(bytes) else { return Ok(None) };
        for index in 0..self.segments.len() {
            let segment = self.segments[index];
            while let Some((start, dirty)) = segment.take(len, self.place(align, fresh), may_be_clean) {
                if dirty < len {
                    match self.open(segment, (segment.free_before(start), start), start + len, fresh) {
                        Ok(()) if fresh != Fresh::Base && self.kind == PageKind::Huge => {
                            self.advise_clean(segment, start + u32::from(fresh == Fresh::Inner), start + len);
                        }
                        Ok(()) => {}
                        // The claim contains a foreign mapping.
                        Err(Errno::EXISTS) => {
                            segment.keep_out(start, len);
                            continue;
                        }
                        Err(error) => {
                            segment.give(start, len, dirty);
                            return Err(error);
                        }
                    }
                }
                return Ok(Some(self.taken(segment, start, len, dirty)));
            }
        }
        Ok(None)
    }

    /// Allocates a span of at least `bytes` that is free and dirty from end to end, so that no page of it is faulted in.
    pub(crate) fn take_resident(&mut self, bytes: usize, align: usize) -> Option<Span> {
        let len = self.units(bytes)?;
        for &segment in &self.segments {
            match segment.take(len, (align, 0), false) {
                Some((start, dirty)) if dirty == len => return Some(self.taken(segment, start, len, dirty).0),
                Some((start, dirty)) => segment.give(start, len, dirty),
                None => {}
            }
        }
        None
    }

    fn taken(&mut self, segment: &'static Segment, start: u32, len: u32, dirty: u32) -> (Span, usize) {
        let (span, dirty) = (Span { segment, start, len }, segment.bytes(dirty));
        self.out += span.bytes();
        self.dirty -= dirty;
        (span, dirty)
    }

    /// Frees a span; all of it is dirty now, freed in `epoch`.
    pub(crate) fn give(&mut self, span: Span, epoch: u8) {
        span.segment.ages(span.start, span.len).fill(epoch);
        self.out -= span.bytes();
        self.dirty += span.bytes();
        span.segment.give(span.start, span.len, span.len);
    }

    /// Extends a used span to `bytes` in place. Returns the clean bytes of the addition.
    pub(crate) fn extend(&mut self, span: Span, bytes: usize, fresh: Fresh) -> Option<usize> {
        let Span { segment, start, len: old, .. } = span;
        let (len, end) = (self.units(bytes)?, start + old);
        let more = len - old;
        if end + segment.free_at_top() == segment.top.get() && segment.free_at_top() < more {
            self.raise_top(segment, more, fresh).ok()?;
        }
        let dirty = segment.extend(start, len)?;
        if self.open(segment, (end, end), end + more, fresh).is_err() {
            segment.cut(start, old);
            segment.give(end, more, dirty);
            return None;
        }
        self.out += segment.bytes(more);
        self.dirty -= segment.bytes(dirty);
        Some(segment.bytes(more - dirty))
    }

    /// Where a block with such pages has to lie: so many bytes before a multiple of a number. If only the huge pages inside are
    /// wanted, one begins right behind the first unit, so that hardly more than that has base pages.
    fn place(&self, align: usize, fresh: Fresh) -> (usize, usize) {
        let unit = self.kind.unit();
        let is_inner = fresh == Fresh::Inner && self.kind == PageKind::Huge && align <= unit;
        if is_inner { (huge_page(), unit) } else { (align, 0) }
    }
}

// ---- Mapping

impl Region {
    /// Maps what is not mapped of the used units from `start` to `end`, a whole extent at a time if the units around are free
    /// too, and nothing below `floor`.
    fn open(
        &mut self,
        segment: &'static Segment,
        (floor, start): (u32, u32),
        end: u32,
        fresh: Fresh,
    ) -> Result<(), Errno> {
        // Holders of used spans change the ages without the lock, so only those of free spans are read.
        let around = (floor, segment.free_behind(end));
        let mut unit = start;
        while let Some(mapped) = segment.ages(unit, end - unit).iter().position(|&age| age == UNMAPPED) {
            let from = unit + mapped as u32;
            let run = (from, from + unmapped(segment.ages(from, end - from).iter()));
            let extent = match fresh {
                Fresh::Huge => (segment.huge_below(run.0), segment.huge_above(run.1)),
                _ => self.multiples(run, self.kind.extent()),
            };
            let huge = |(low, high): (u32, u32)| match fresh {
                Fresh::Base => (low, low),
                Fresh::Huge => (segment.huge_above(low), segment.huge_below(high)),
                Fresh::Inner => (segment.huge_above(start + 1).max(low), segment.huge_below(end).min(high)),
            };
            let wide = widen(segment, run, around, extent);
            if self.map_units(segment, wide, huge(wide)).is_err() {
                let pages = widen(segment, run, around, self.multiples(run, self.kind.page()));
                self.map_units(segment, pages, huge(pages))?;
            }
            unit = run.1;
        }
        Ok(())
    }

    /// The units from `from` to `to`, widened to multiples of `step` bytes from the segment's first unit.
    fn multiples(&self, (from, to): (u32, u32), step: usize) -> (u32, u32) {
        let step = (step >> self.kind.unit_shift()) as u32;
        (from - from % step, to.next_multiple_of(step))
    }

    /// Maps units, those of `huge` on huge pages if it is not empty. A refusal of these only means base pages.
    fn map_units(&mut self, segment: &'static Segment, (from, to): (u32, u32), huge: (u32, u32)) -> Result<(), Errno> {
        os::commit(segment.address(from), segment.bytes(to - from))?;
        segment.ages(from, to - from).fill(CLEAN);
        self.mapped += segment.bytes(to - from);
        self.advise_clean(segment, huge.0, huge.1);
        Ok(())
    }

    /// Asks for huge pages for those that lie in some mapped units as a whole.
    fn advise_clean(&mut self, segment: &Segment, from: u32, to: u32) {
        let (low, high) = (segment.huge_above(from), segment.huge_below(to));
        if low < high && os::advise_huge(segment.address(low), segment.bytes(high - low)).is_ok() {
            let clean = segment.ages(low, high - low).iter_mut().filter(|age| **age == CLEAN);
            clean.for_each(|age| *age = CLEAN_HUGE);
            self.has_huge |= self.kind == PageKind::Base;
        }
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
    let before = unmapped(segment.ages(low, from - low).iter().rev());
    let behind = unmapped(segment.ages(to, high - to).iter());
    (from - before, to + behind)
}

/// Number of unmapped units before the first that is mapped.
fn unmapped<'a>(ages: impl Iterator<Item = &'a u8>) -> u32 {
    ages.take_while(|&&age| age == UNMAPPED).count() as u32
}

// ---- Growth

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
            let at = os::map_aligned(bytes, os::page_size(), None)?; // its records would take a thousandth of it
            // SAFETY: it was just mapped and is not in use.
            unsafe { os::unmap(at, bytes)? };
        }
        let (align, _) = self.place(align, fresh);
        let units = bytes.checked_add(align).and_then(|bytes| self.units(bytes)).ok_or(Errno::NO_MEMORY)?;
        let mut refused = None;
        for &segment in &self.segments {
            match self.raise_top(segment, units, fresh) {
                Ok(()) => return Ok(()),
                Err(error) => refused = refused.or(error),
            }
        }
        // Where memory for records is short, another segment would be another one without.
        if let Some(error) = refused {
            return Err(error);
        }
        if self.segments.len() == MAX_SEGMENTS {
            return Err(Errno::NO_MEMORY);
        }
        let segment = claim::segment(self.kind, self.node, units, self.mapped, owner)?;
        self.segments.push(segment);
        self.raise_top(segment, units, fresh).map_err(|error| error.unwrap_or(Errno::NO_MEMORY))
    }

    /// Raises the top of a segment so far that a span of `units` ends there. Fails without an error if it has no room, or
    /// somebody else's memory lies where its records would.
    fn raise_top(&self, segment: &'static Segment, units: u32, fresh: Fresh) -> Result<(), Option<Errno>> {
        let (top, free) = (segment.top.get(), segment.free_at_top());
        let step = (self.kind.extent() >> self.kind.unit_shift()) as u32;
        let wanted = top.checked_add(units.saturating_sub(free)).and_then(|top| top.checked_next_multiple_of(step));
        let Some(raised) = wanted.filter(|&raised| raised <= segment.capacity()) else { return Err(None) };
        let whole = segment.huge_above(raised);
        let raised = if fresh == Fresh::Huge && whole <= segment.capacity() { whole } else { raised };
        if raised > top {
            claim::open_records(segment, raised)
                .map_err(|error| Some(error).filter(|&error| error != Errno::EXISTS))?;
            segment.top.set(raised);
            segment.give(top, raised - top, 0); // fresh ages are UNMAPPED, which is zero
        } else if free > 0 {
            // It was too deep in its list to be examined.
            let (len, dirty) = segment.unlist(top - free);
            segment.list(top - free, len, dirty);
        }
        Ok(())
    }
}
