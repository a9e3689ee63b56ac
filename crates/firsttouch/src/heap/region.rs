//! A region: segments with pages of one kind, and the memory mapped in them. Guarded by the heap's lock.

use crate::heap::free_lists::Side;
use crate::heap::segment::{NONE, Segment};
use crate::heap::shape::{Fresh, Kind, Shape};
use crate::os::Errno;

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

    pub(crate) fn kind(&self) -> Kind {
        if self.segment.huge { Kind::Huge } else { Kind::Small }
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
            while let Some((start, dirty)) = segment.take(len, align, sides) {
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
            let Some((start, dirty)) = segment.take(len, align, &[Side::Dirty]) else { continue };
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
