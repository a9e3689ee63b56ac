//! The top of a segment, where its units with records end: raised when nothing free fits, lowered when the end is idle.

use crate::allocator::Allocator;
use crate::heap::ages::UNMAPPED;
use crate::heap::build;
use crate::heap::mapping_limit;
use crate::heap::open;
use crate::heap::records;
use crate::heap::region::{MAX_SEGMENTS, Region};
use crate::heap::segment::Segment;
use crate::heap::shape::Fresh;
use crate::os::{self, Errno};
use crate::pages::mapping::probe;

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
        let units = self.units(bytes.checked_add(align).ok_or(Errno::NO_MEMORY)?).ok_or(Errno::NO_MEMORY)?;
        let mut refused = None;
        for segment in self.segments().filter(|segment| segment.growable.get()) {
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
        let segment = build::segment(self.shape, units, self.mapped, owner)?;
        self.segments[self.count] = Some(segment);
        self.count += 1;
        if segment.growable.get() {
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
            records::open(segment, raised)?;
            segment.top.set(raised);
            segment.give(top, raised - top, 0); // fresh ages are UNMAPPED, which is zero
        } else if let Some((start, _)) = segment.free_at_top() {
            // It was too deep in its list to be examined.
            let (len, dirty) = segment.unlist(start);
            segment.list(start, len, dirty);
        }
        Ok(())
    }

    /// Lowers the tops of segments below large free clean spans, and discards the records above.
    pub(crate) fn lower_tops(&mut self) {
        const LEAST: usize = 16 << 20;
        if mapping_limit::keeps_mappings() {
            return;
        }
        let step = (self.shape.extent >> self.shape.unit_shift) as u32;
        for index in 0..self.count {
            let Some(segment) = self.segments[index].filter(|segment| segment.claim.has_slots()) else { continue };
            let Some((start, len)) = segment.free_at_top() else { continue };
            let (top, lowered) = (start + len, start.next_multiple_of(step));
            let bytes = (top.saturating_sub(lowered) as usize) << segment.unit_shift();
            if segment.dirty_units(start) > 0 || bytes == 0 || (bytes < LEAST && lowered > 0) {
                continue;
            }
            if !self.unmap_free(segment, lowered, top) {
                continue;
            }
            segment.unlist(start);
            segment.top.set(lowered);
            if lowered > start {
                segment.list(start, lowered - start, 0);
            }
            records::empty(segment, lowered);
        }
    }

    /// Unmaps the mapped parts of the free clean units from `at` to `end`, and nothing else, because a hole may
    /// contain a foreign mapping. Returns whether all of it was unmapped.
    fn unmap_free(&mut self, segment: &'static Segment, mut at: u32, end: u32) -> bool {
        while at < end {
            let from = at + open::unmapped_run(segment.ages(at, end - at));
            let run = open::mapped_run(segment.ages(from, end - from));
            let bytes = (run as usize) << segment.unit_shift();
            // SAFETY: the units are free and clean, and the lock is held, so they are not in use (law 8).
            if run > 0 && unsafe { os::unmap(segment.address(from), bytes) }.is_err() {
                return false;
            }
            segment.empty(from, run, UNMAPPED);
            self.mapped -= bytes;
            at = from + run;
        }
        true
    }
}
