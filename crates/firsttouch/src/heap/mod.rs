//! A heap: the spans of one allocator, in a region for base pages and one for huge pages. A region has segments with pages of one
//! kind, and maps their memory. From a request to the system it is this file and `os`; `segment.rs` keeps the records.
//!
//! Units are mapped on demand, a whole extent at a time if the units around are free too. The top of a segment, where its
//! units with records end, is raised when nothing free fits.
//!
//! The words: a span is *used* (a block has it, or a shard) or *free*. A unit is *clean* if it reads zero, as it was not
//! handed out since it was mapped or purged, and else *dirty*. Free dirty memory is *idle*. Memory that was not mapped, or is
//! clean, is *fresh*. To *take* a span makes it used, to *free* it makes it free. A *flush* frees the spans of the shards. A
//! *purge* returns idle memory to the system; *decay* purges what was idle for long, and a *trim* all that is idle.

#![allow(unsafe_code)] // Safety: records lie outside the memory they describe; `segment.rs` tells the lock of each field.

pub mod claim;
pub mod malloc_trim;
pub mod purger;
pub(crate) mod purging;
pub(crate) mod segment;
#[cfg(test)]
mod tests;

use crate::address_map::find;
use crate::allocator::Allocator;
use crate::heap::segment::{
    CLEAN, CLEAN_HUGE, FreshPages, NO_UNIT, Occupant, Place, RegionKind, Segment, UNMAPPED, huge_page,
};
use crate::layout::round_down;
use crate::os::{self, Errno};
use crate::policy::{MAX_SEGMENTS, PROBE_MIN};
use crate::sync::lock::{Guard, Lock, RawLock};
pub use purging::map_anew;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::Release};

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

    pub(crate) fn kind(&self) -> RegionKind {
        self.segment.kind
    }

    pub(crate) fn bytes(&self) -> usize {
        self.segment.bytes(self.len)
    }
}

/// A span that was just taken, and how many of its bytes are dirty; the others read zero.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    pub span: Span,
    pub dirty: usize,
}

/// Which free memory may serve a request, and on which pages comes what of it is not mapped.
#[derive(Clone, Copy)]
pub(crate) enum Supply {
    /// Dirty as a whole, so that no page is faulted in.
    Dirty,
    /// Dirty at least by half.
    MostlyDirty(FreshPages),
    /// Any, dirty first.
    Any(FreshPages),
}

/// Bytes of memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Footprint {
    /// Handed out.
    pub out: usize,
    /// Free and dirty, and not on their way back to the system.
    pub dirty: usize,
    /// Mapped.
    pub mapped: usize,
}

pub(crate) struct Heap {
    /// For base pages and for huge ones. Where both are held, they were taken in this order.
    pub(crate) regions: [Lock<Region>; 2],
    /// Held during a purge, so that none is half done at a fork. Acquired before the locks of `regions`.
    pub(crate) purging: Lock<()>,
    owner: *const dyn Allocator,
}

// SAFETY: the owner is only passed on, and every allocator may be used from any thread.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

impl Heap {
    /// A heap that serves the threads of a node, whose blocks are `owner`'s.
    ///
    /// # Safety
    /// The owner stays where it is until [`Heap::close`].
    pub(crate) unsafe fn new(node: u8, owner: *const dyn Allocator) -> Self {
        let region = |kind| {
            let segments = Vec::with_capacity(MAX_SEGMENTS);
            Lock::new(Region { kind, node, segments, held: Footprint::default(), has_huge: false })
        };
        Self { regions: [RegionKind::Base, RegionKind::Huge].map(region), purging: Lock::new(()), owner }
    }

    pub(crate) fn region(&self, kind: RegionKind) -> Guard<'_, Region> {
        self.regions[kind as usize].lock()
    }

    /// Takes a span from free memory, dirty if possible, or from new address space. What is mapped for it comes on the pages
    /// that `fresh` says.
    pub(crate) fn take_or_grow(
        &self,
        kind: RegionKind,
        bytes: usize,
        place: Place,
        fresh: FreshPages,
    ) -> Result<Taken, Errno> {
        let mut region = self.region(kind);
        loop {
            if let Some(taken) = region.take(bytes, place, Supply::Any(fresh))? {
                return Ok(taken);
            }
            region.grow(bytes, place, fresh, self.owner)?;
        }
    }

    /// Frees all but the first `keep` units of a used span in `epoch`. Returns what is left of it.
    pub(crate) fn shrink(&self, span: Span, keep: u32, epoch: u8) -> Span {
        let mut region = self.region(span.kind());
        span.segment.cut(span.start, keep);
        region.free(Span { start: span.start + keep, len: span.len - keep, ..span }, epoch);
        Span { len: keep, ..span }
    }

    /// Moves the pages of a used span to the beginning of another one of at least `bytes`, and frees the first: nothing is copied,
    /// and no page is there twice. Returns the other span as it was taken. `None`, and the block is where it was, if there is no
    /// such span, or the system does not move the pages. What that saves is in `docs/notes/016-what-the-heap-did-for-few.md`.
    ///
    /// # Safety
    /// Nobody uses the span meanwhile.
    pub(crate) unsafe fn relocate(&self, from: Span, bytes: usize, align: usize, fresh: FreshPages) -> Option<Taken> {
        // Once the system has refused, it is not asked again, as each question costs the pages of a target: Linux moves none before
        // 5.7, and before 6.17 none that lie in several mappings, as those of a block that was moved and grew.
        static REFUSES: AtomicBool = AtomicBool::new(false);
        if REFUSES.load(Relaxed) {
            return None;
        }
        // Huge pages stay whole where they come to lie as before.
        let before = from.address().wrapping_neg() % huge_page();
        let keeps_huge = before == 0 || from.kind() == RegionKind::Huge;
        let place = if keeps_huge { Place { align: align.max(huge_page()), before } } else { align.into() };
        let Taken { span: to, dirty } = self.take_or_grow(from.kind(), bytes, place, fresh).ok()?;
        // The kernel unmaps the target before it refuses, and moves some pages only: in a hole, what is mapped then was moved.
        // The kernel places nothing in this range by itself (`claim::RANGES`); only a request for this very address between the
        // two calls could take the hole.
        // SAFETY: both spans are mapped, and used by nobody: one was just taken, the other is the caller's.
        let hole = unsafe { os::decommit(to.address(), from.bytes()) };
        // SAFETY: as above.
        let Err(error) = hole.and_then(|()| unsafe { os::remap(from.address(), to.address(), from.bytes()) }) else {
            from.segment.set_occupant(from.start, Occupant::NONE);
            self.free_purged(from);
            return Some(Taken { span: to, dirty });
        };
        REFUSES.fetch_or(error != Errno::NO_MEMORY, Relaxed); // which it may have again later
        let mut region = self.region(to.kind());
        if hole.is_ok() {
            to.segment.set_ages(to.start, from.len, UNMAPPED);
            region.held.mapped -= from.bytes();
        }
        region.held.out -= to.bytes();
        purging::free_run(&mut region, to.segment, (to.start, to.len), None);
        None
    }

    /// Adds the memory of the heap.
    pub(crate) fn add_footprint(&self, sum: &mut Footprint) {
        for region in &self.regions {
            let Footprint { out, dirty, mapped } = region.lock().held;
            sum.out += out;
            sum.dirty += dirty;
            sum.mapped += mapped;
        }
    }

    /// Calls `each` with all locks of the heap, in their order.
    pub(crate) fn locks(&self, each: &mut dyn FnMut(&RawLock)) {
        each(self.purging.raw());
        self.regions.iter().for_each(|region| each(region.raw()));
    }

    /// Closes all segments. If any block is live they stay permanently (law 8), without an owner.
    ///
    /// # Safety
    /// The heap is not used any more.
    pub(crate) unsafe fn close(&self) {
        let regions = self.regions.each_ref().map(|region| region.lock());
        let alive = regions.iter().any(|region| region.held.out > 0);
        for segment in regions.iter().flat_map(|region| &region.segments) {
            if alive {
                segment.is_orphan.store(true, Release);
                continue;
            }
            // SAFETY: no block in it is live, and none will be: the heap is not used any more (drops of its owners).
            unsafe { claim::close(segment) };
        }
    }
}

/// Segments with pages of one kind, under the lock that [`Heap::regions`] has for it.
pub(crate) struct Region {
    pub kind: RegionKind,
    /// The node whose threads it serves.
    node: u8,
    /// With capacity for all that it may have, as nothing is allocated under the lock.
    pub segments: Vec<&'static Segment>,
    pub held: Footprint,
    /// Whether a part of a region for base pages was advised huge.
    pub has_huge: bool,
}

impl Region {
    fn units(&self, bytes: usize) -> Option<u32> {
        let unit = self.kind.unit();
        let units = bytes.checked_add(unit - 1)? >> unit.trailing_zeros(); // without a division
        u32::try_from(units).ok().filter(|&units| units < NO_UNIT >> 1)
    }

    /// Takes a span of at least `bytes` from free memory. To map what is not mapped may fail.
    pub(crate) fn take(&mut self, bytes: usize, place: Place, supply: Supply) -> Result<Option<Taken>, Errno> {
        let Some(len) = self.units(bytes) else { return Ok(None) };
        let (fewest, fresh) = match supply {
            Supply::Dirty => (len, FreshPages::Base),
            Supply::MostlyDirty(fresh) => (len.div_ceil(2), fresh),
            Supply::Any(fresh) => (0, fresh),
        };
        let place = self.place(bytes, place, fresh);
        for index in 0..self.segments.len() {
            let segment = self.segments[index];
            while let Some((start, dirty)) = segment.take(len, place, fewest == 0) {
                if dirty < fewest {
                    segment.free(start, len, dirty);
                    break;
                }
                if dirty < len {
                    match self.map_missing(segment, (segment.free_before(start), start), start + len, fresh) {
                        Ok(()) if fresh != FreshPages::Base && self.kind == RegionKind::Huge => {
                            self.advise_clean(segment, start + u32::from(fresh == FreshPages::Inner), start + len);
                        }
                        Ok(()) => {}
                        // The claim contains a foreign mapping.
                        Err(Errno::EXISTS) => {
                            segment.keep_out(start, len);
                            continue;
                        }
                        Err(error) => {
                            segment.free(start, len, dirty);
                            return Err(error);
                        }
                    }
                }
                let taken = Taken { span: Span { segment, start, len }, dirty: segment.bytes(dirty) };
                self.held.out += taken.span.bytes();
                self.held.dirty -= taken.dirty;
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    /// Frees a span; all of it is dirty now, freed in `epoch`.
    pub(crate) fn free(&mut self, span: Span, epoch: u8) {
        span.segment.set_ages(span.start, span.len, epoch);
        self.held.out -= span.bytes();
        self.held.dirty += span.bytes();
        span.segment.free(span.start, span.len, span.len);
    }

    /// Extends a used span to `bytes` in place. Returns the longer one, and the clean bytes of the addition.
    pub(crate) fn extend(&mut self, span: Span, bytes: usize, fresh: FreshPages) -> Option<(Span, usize)> {
        let Span { segment, start, len: old, .. } = span;
        let (len, end) = (self.units(bytes)?, start + old);
        let more = len - old;
        if end + segment.free_at_top() == segment.top.get() && segment.free_at_top() < more {
            self.raise_top(segment, more, fresh).ok()?;
        }
        let dirty = segment.extend(start, len)?;
        if self.map_missing(segment, (end, end), end + more, fresh).is_err() {
            segment.cut(start, old);
            segment.free(end, more, dirty);
            return None;
        }
        self.held.out += segment.bytes(more);
        self.held.dirty -= segment.bytes(dirty);
        Some((Span { len, ..span }, segment.bytes(more - dirty)))
    }

    /// Where a span of `bytes` with such pages may begin. If only the huge pages inside are wanted, what has base pages, half a huge
    /// page to one and a half, is shared out between its ends, unless where it begins is said.
    fn place(&self, bytes: usize, place: Place, fresh: FreshPages) -> Place {
        if fresh != FreshPages::Inner || self.kind == RegionKind::Base || place.before > 0 {
            return place;
        }
        let (huge, rest) = (huge_page(), bytes % huge_page());
        let ends = if rest < huge / 2 { rest + huge } else { rest };
        Place { align: place.align.max(huge), before: round_down(ends / 2, place.align.max(self.kind.unit())) }
    }
}

// ---- Mapping

impl Region {
    /// Maps those of the used units from `start` to `end` that are not mapped; a whole extent at a time if the units around them
    /// are free, but nothing below `floor`.
    fn map_missing(
        &mut self,
        segment: &'static Segment,
        (floor, start): (u32, u32),
        end: u32,
        fresh: FreshPages,
    ) -> Result<(), Errno> {
        // Holders of used spans change the ages without the lock, so only those of free spans are read.
        let around = (floor, segment.free_behind(end));
        let huge = match fresh {
            FreshPages::Base => (end, end),
            FreshPages::Huge => (0, NO_UNIT),
            FreshPages::Inner => (start + 1, end),
        };
        let mut unit = start;
        while let Some(mapped) = segment.ages(unit, end - unit).iter().position(|age| age.get() == UNMAPPED) {
            let from = unit + mapped as u32;
            let run = (from, from + unmapped(segment.ages(from, end - from).iter()));
            let [extent, pages] = self.steps(segment, run, fresh);
            let mut map = |within| self.map_units(segment, widen(segment, run, around, within), huge);
            map(extent).or_else(|_| map(pages))?;
            unit = run.1;
        }
        Ok(())
    }

    /// What is mapped with the units from `from` to `to` if it is free: the extent around them, or else what completes their pages.
    fn steps(&self, segment: &Segment, (from, to): (u32, u32), fresh: FreshPages) -> [(u32, u32); 2] {
        let steps = [self.kind.extent(), self.kind.page()].map(|step| (step / self.kind.unit()) as u32);
        let [extent, pages] = steps.map(|step| (from - from % step, to.next_multiple_of(step)));
        [if fresh == FreshPages::Huge { (segment.huge_below(from), segment.huge_above(to)) } else { extent }, pages]
    }

    /// Maps units; whole huge pages that lie in `huge`, too, come as such. A refusal of these only means base pages.
    fn map_units(&mut self, segment: &'static Segment, (from, to): (u32, u32), huge: (u32, u32)) -> Result<(), Errno> {
        os::commit(segment.address(from), segment.bytes(to - from))?;
        segment.set_ages(from, to - from, CLEAN);
        self.held.mapped += segment.bytes(to - from);
        let (low, high) = (segment.huge_above(huge.0.max(from)), segment.huge_below(huge.1.min(to)));
        if low < high {
            // Where all memory gets huge pages, one would be filled for the little that is used around them.
            for (from, to) in [(from, low), (high, to)].into_iter().filter(|&(from, to)| from < to) {
                os::unadvise_huge(segment.address(from), segment.bytes(to - from));
            }
            self.advise_clean(segment, low, high);
        }
        Ok(())
    }

    /// Asks for huge pages for those that lie in some mapped units as a whole.
    fn advise_clean(&mut self, segment: &Segment, from: u32, to: u32) {
        let (low, high) = (segment.huge_above(from), segment.huge_below(to));
        if low < high && os::advise_huge(segment.address(low), segment.bytes(high - low)).is_ok() {
            let clean = segment.ages(low, high - low).iter().filter(|age| age.get() == CLEAN);
            clean.for_each(|age| age.set(CLEAN_HUGE));
            self.has_huge |= self.kind == RegionKind::Base;
        }
    }
}

/// A run of units, widened towards an extent within bounds as far as nothing is mapped there.
fn widen(segment: &Segment, (from, to): (u32, u32), (floor, ceiling): (u32, u32), extent: (u32, u32)) -> (u32, u32) {
    let (low, high) = (extent.0.max(floor), extent.1.min(ceiling).max(to));
    let before = unmapped(segment.ages(low, from - low).iter().rev());
    let behind = unmapped(segment.ages(to, high - to).iter());
    (from - before, to + behind)
}

/// Number of unmapped units before the first that is mapped.
fn unmapped<'a>(ages: impl Iterator<Item = &'a Cell<u8>>) -> u32 {
    ages.take_while(|age| age.get() == UNMAPPED).count() as u32
}

// ---- Growth

impl Region {
    /// Makes room for a span of `bytes`: more units at a segment's top, or another segment.
    pub(crate) fn grow(
        &mut self,
        bytes: usize,
        place: Place,
        fresh: FreshPages,
        owner: *const dyn Allocator,
    ) -> Result<(), Errno> {
        if bytes >= PROBE_MIN {
            let at = os::map_aligned(bytes, os::page_size(), None)?; // its records would take a thousandth of it
            // SAFETY: it was just mapped and is not in use.
            unsafe { os::unmap(at, bytes)? };
        }
        let align = self.place(bytes, place, fresh).align;
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
        let segment = claim::segment(self.kind, self.node, units, self.held.mapped, owner)?;
        self.segments.push(segment);
        self.raise_top(segment, units, fresh).map_err(|error| error.unwrap_or(Errno::NO_MEMORY))
    }

    /// Raises the top of a segment so far that a span of `units` ends there. Fails without an error if it has no room, or
    /// somebody else's memory lies where its records would.
    fn raise_top(&self, segment: &'static Segment, units: u32, fresh: FreshPages) -> Result<(), Option<Errno>> {
        let (top, free) = (segment.top.get(), segment.free_at_top());
        let step = (self.kind.extent() / segment.unit()) as u32;
        let wanted = top.checked_add(units.saturating_sub(free)).and_then(|top| top.checked_next_multiple_of(step));
        let Some(raised) = wanted.filter(|&raised| raised <= segment.capacity()) else { return Err(None) };
        let whole = segment.huge_above(raised);
        let raised = if fresh == FreshPages::Huge && whole <= segment.capacity() { whole } else { raised };
        if raised > top {
            claim::open_records(segment, raised)
                .map_err(|error| Some(error).filter(|&error| error != Errno::EXISTS))?;
            segment.top.set(raised);
            segment.free(top, raised - top, 0); // fresh ages are UNMAPPED, which is zero
        } else if free > 0 {
            // The free span at the top is large enough, but lay too deep in its list to be examined: it comes first now.
            let (len, dirty) = segment.unlist(top - free);
            segment.list(top - free, len, dirty);
        }
        Ok(())
    }
}

// ---- Lookups

/// The live block of a heap that begins at `address`, and its span. The requested size tells a block from a wrong address: it is
/// zero for a freed span and for an address at which no span ever began.
#[inline]
pub(crate) fn block_at(address: usize) -> Option<(Span, Occupant)> {
    let (segment, start) = find(address)?;
    if start >= segment.top.get() || segment.is_free(start) {
        return None;
    }
    let occupant = segment.occupant(start);
    let begins_here = occupant.asked() != 0 && address == segment.address(start) + occupant.offset();
    begins_here.then(|| (Span { segment, start, len: segment.span_len(start) }, occupant))
}

/// Marks the block at `address`, if it is a heap's: a keeper lists it, or cuts it into blocks of its own.
pub(crate) fn mark_listed(address: usize) {
    if let Some((span, occupant)) = block_at(address) {
        span.segment.set_occupant(span.start, occupant.listed());
    }
}

/// The span of the live block at `address`.
#[inline]
pub(crate) fn span_at(address: usize) -> Option<Span> {
    let (segment, start) = find(address)?;
    Some(Span { segment, start, len: segment.span_len(start) })
}
