//! Allocating from what is mapped, for when the system maps nothing more.

use crate::heap::heap::Heap;
use crate::heap::open::{mapped_run, unmapped_run};
use crate::heap::region::{Region, Span};
use crate::heap::segment::{Segment, State};
use crate::heap::shape::Kind;

impl Heap {
    /// Allocates a span from what is free and mapped from end to end, also where another free span fits better.
    pub(crate) fn take_mapped(&self, kind: Kind, bytes: usize, align: usize) -> Option<Span> {
        self.regions.lock()[kind as usize].take_mapped(bytes, align)
    }
}

impl Region {
    fn take_mapped(&mut self, bytes: usize, align: usize) -> Option<Span> {
        let len = self.units(bytes)?;
        let found = |segment| Some((segment, mapped_part(segment, len, align)?));
        let (segment, (free, start)) = self.segments().find_map(found)?;
        segment.carve(free, start, len);
        let dirty = (segment.count_dirty(start, len) as usize) << self.shape.unit_shift;
        let span = Span { segment, start, len, dirty };
        self.out += span.bytes();
        self.dirty -= dirty;
        Some(span)
    }
}

/// The first free span with `len` mapped units at a multiple of `align` bytes, and the first of these.
fn mapped_part(segment: &Segment, len: u32, align: usize) -> Option<(u32, u32)> {
    let mut found = None;
    segment.walk(|free, total, state| {
        let (mut at, end) = (free, free + total);
        while state == State::Free && found.is_none() && at < end {
            at += unmapped_run(segment.ages(at, end - at));
            let address = segment.address(at);
            let skip = (address.next_multiple_of(align) - address) >> segment.unit_shift();
            let run = mapped_run(segment.ages(at, end - at));
            found = (run >= len && (run - len) as usize >= skip).then_some((free, at + skip as u32));
            at += run;
        }
        found.is_none()
    });
    found
}
