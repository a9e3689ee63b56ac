//! A heap: the spans of one allocator, in a region for base pages and one for huge pages. From a request to the system it
//! is this file, `growing.rs` (regions, and the memory mapped in them) and `os`.

#![allow(unsafe_code)] // Safety: records lie outside the memory they describe, and each field names the lock it needs.

pub mod c_library;
pub(crate) mod claim;
pub(crate) mod growing;
#[cfg(test)]
mod invariants;
pub mod purger;
pub(crate) mod purging;
pub(crate) mod segment;

use crate::allocator::{AllocError, Allocator};
use crate::heap::growing::{Region, Span};
use crate::heap::segment::Side;
use crate::heap::segment::{CLEAN, FIRST_EPOCH, Fresh, Occupant, PageKind, Shape, SpanState, UNMAPPED, next_epoch};
use crate::os::{self, Errno};
use crate::sync::lock::{Guard, Lock};
pub use purging::map_anew;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

struct Owner(*const dyn Allocator);
// SAFETY: every allocator may be used from any thread.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

/// The memory of a heap, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    /// Handed out.
    pub out: usize,
    /// Free and dirty.
    pub dirty: usize,
    /// Dirty, and on their way back to the system.
    pub leaving: usize,
    /// Mapped.
    pub mapped: usize,
}

impl std::ops::Add for Held {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            out: self.out + other.out,
            dirty: self.dirty + other.dirty,
            leaving: self.leaving + other.leaving,
            mapped: self.mapped + other.mapped,
        }
    }
}

pub(crate) struct Heap {
    pub(crate) regions: Lock<[Region; 2]>,
    /// Held during a purge, so that none is half done at a fork. Acquired before `regions`.
    pub(crate) purging: Lock<()>,
    /// The age of units that are freed now; advanced by the background purger's ticks.
    epoch: AtomicU8,
    owner: OnceLock<Owner>,
}

impl Heap {
    /// A heap that serves the threads of a node.
    pub(crate) fn new(node: u8) -> Self {
        Self {
            regions: Lock::new([Region::new(Shape::small(node)), Region::new(Shape::huge(node))]),
            purging: Lock::new(()),
            epoch: AtomicU8::new(FIRST_EPOCH),
            owner: OnceLock::new(),
        }
    }

    /// Sets the owner of the blocks. This must precede the first [`Heap::take_or_grow`].
    ///
    /// # Safety
    /// The allocator stays where it is until [`Heap::close`].
    pub(crate) unsafe fn set_owner(&self, owner: *const dyn Allocator) {
        let _ = self.owner.set(Owner(owner));
    }

    pub(crate) fn regions(&self) -> Guard<'_, [Region; 2]> {
        self.regions.lock()
    }

    /// Allocates a span from the first of `sides` that has one, or from new address space; what is mapped for it comes on the
    /// pages that `fresh` says.
    pub(crate) fn take_or_grow(
        &self,
        kind: PageKind,
        bytes: usize,
        align: usize,
        sides: [Side; 2],
        fresh: Fresh,
    ) -> Result<Span, Errno> {
        let owner = self.owner.get().ok_or(Errno::UNSUPPORTED)?.0;
        let mut regions = self.regions.lock();
        let region = &mut regions[kind as usize];
        loop {
            if let Some(span) = region.take(bytes, align, &sides, fresh)? {
                return Ok(span);
            }
            region.grow(bytes, align, fresh, owner)?;
        }
    }

    /// Allocates a span from what is free and at least partly dirty.
    pub(crate) fn take_dirty(&self, kind: PageKind, bytes: usize, align: usize) -> Result<Option<Span>, Errno> {
        self.regions.lock()[kind as usize].take(bytes, align, &[Side::Dirty], kind.pages())
    }

    /// Allocates a span that is free and dirty from end to end.
    pub(crate) fn take_resident(&self, kind: PageKind, bytes: usize, align: usize) -> Option<Span> {
        self.regions.lock()[kind as usize].take_resident(bytes, align)
    }

    /// Allocates a span that is free and mapped from end to end, also where another free span fits better.
    pub(crate) fn take_mapped(&self, kind: PageKind, bytes: usize, align: usize) -> Option<Span> {
        self.regions.lock()[kind as usize].take_mapped(bytes, align)
    }

    /// Frees a span, as of `epoch`.
    pub(crate) fn give(&self, span: Span, epoch: u8) {
        self.regions.lock()[span.kind() as usize].give(span, epoch);
    }

    /// Frees all but the first `keep` units of a used span.
    pub(crate) fn shrink(&self, span: Span, keep: u32) {
        let epoch = self.epoch();
        let mut regions = self.regions.lock();
        span.segment.cut(span.start, keep);
        regions[span.kind() as usize].give(Span { start: span.start + keep, len: span.len - keep, ..span }, epoch);
    }

    /// Moves the pages of a used span to the beginning of another one, in the same heap, and frees the first; if the system
    /// does not move them, frees the other one. Returns whether it moved them.
    ///
    /// # Safety
    /// Nobody uses either span meanwhile, nor afterwards the one that was freed.
    pub(crate) unsafe fn carry(&self, from: Span, to: Span) -> bool {
        let Span { segment, start, .. } = to;
        // Where all of a claim stays mapped, foreign memory could come to lie in a hole. Elsewhere the pages move into one:
        // before a kernel refuses, it unmaps the place that they should have come to.
        // SAFETY: both spans are mapped, and used by nobody (`Pool::carry`).
        let has_hole = segment.claim.has_slots() && unsafe { os::decommit(to.address(), from.bytes()) }.is_ok();
        // SAFETY: as above.
        let has_moved = has_hole && unsafe { os::remap(from.address(), to.address(), from.bytes()) }.is_ok();
        let mut regions = self.regions.lock();
        let region = &mut regions[to.kind() as usize];
        if has_moved {
            from.segment.set_occupant(from.start, Occupant::NONE);
            from.segment.ages(from.start, from.len).fill(CLEAN);
            region.out -= from.bytes();
            from.segment.give(from.start, from.len, 0);
            return true;
        }
        segment.ages(start, to.len).fill(self.epoch());
        if has_hole {
            segment.ages(start, from.len).fill(UNMAPPED);
            region.mapped -= from.bytes();
        }
        let dirty = segment.count_dirty(start, to.len);
        region.out -= to.bytes();
        region.dirty += (dirty as usize) << segment.unit_shift();
        segment.give(start, to.len, dirty);
        false
    }

    /// Extends a used span to `bytes` in place, by fresh memory on `fresh` pages. Returns the dirty and the clean bytes of
    /// the addition.
    pub(crate) fn extend(&self, span: Span, bytes: usize, fresh: Fresh) -> Option<(usize, usize)> {
        self.regions.lock()[span.kind() as usize].extend(span, bytes, fresh)
    }

    /// Unmaps idle memory at the tops of the segments, and discards its records.
    pub(crate) fn lower_tops(&self) {
        self.regions.lock().iter_mut().for_each(Region::lower_tops);
    }

    pub(crate) fn held(&self) -> Held {
        let regions = self.regions.lock();
        let sum = |field: fn(&Region) -> usize| regions.iter().map(field).sum();
        Held { out: sum(|r| r.out), dirty: sum(|r| r.dirty), leaving: sum(|r| r.leaving), mapped: sum(|r| r.mapped) }
    }

    #[inline]
    pub(crate) fn epoch(&self) -> u8 {
        self.epoch.load(Relaxed)
    }

    /// Advances the epoch.
    pub(crate) fn tick(&self) {
        self.epoch.store(next_epoch(self.epoch()), Relaxed);
    }

    /// Holds all locks of the heap, in their order, around a fork.
    pub(crate) fn hold(&self) {
        self.purging.hold();
        self.regions.hold();
    }

    /// Ends [`Heap::hold`].
    ///
    /// # Safety
    /// The locks are held by `hold`.
    pub(crate) unsafe fn release(&self) {
        // SAFETY: `hold` acquired it, as the fork handlers (`fork.rs`) do before they call this.
        unsafe {
            self.regions.release();
            self.purging.release();
        }
    }

    /// Closes all segments. If any block is live they stay permanently (law 8), without an owner.
    ///
    /// # Safety
    /// The heap is not used any more.
    pub(crate) unsafe fn close(&self) {
        let regions = self.regions.lock();
        let alive = regions.iter().any(|region| region.out > 0);
        for segment in regions.iter().flat_map(Region::segments) {
            if alive {
                segment.area.orphan();
                continue;
            }
            // SAFETY: no block in it is live, and none will be: the heap is not used any more (drops of its owners).
            unsafe { claim::close(segment) };
        }
    }
}

/// Whether a live block of a heap begins at `address`. A wrong address is told from a block by its requested size,
/// which is zero for a freed span and for an address at which no span ever began.
pub(crate) fn lives(address: usize) -> bool {
    segment::find(address).is_some_and(|(segment, unit)| {
        let begins_here = || {
            let occupant = segment.occupant(unit);
            occupant.asked() != 0 && address == segment.address(unit) + occupant.offset()
        };
        unit < segment.top.get() && segment.state(unit) == SpanState::Used && begins_here()
    })
}

/// The span of the live block at `address`.
#[inline]
pub(crate) fn span_at(address: usize) -> Option<Span> {
    let (segment, start) = segment::find(address)?;
    Some(Span { segment, start, len: segment.span_len(start), dirty: 0 })
}

/// The usable size of the live block at `address`, also where its owner no longer exists; 0 if no block begins there.
pub(crate) fn usable_at(address: usize) -> usize {
    let span = span_at(address).filter(|_| lives(address));
    span.map_or(0, |span| span.usable())
}

/// The error for a request of `asked` bytes that the system refused with `error`.
#[cold]
pub(crate) fn refused(asked: usize, error: Errno) -> AllocError {
    AllocError::new(asked, os::why_refused(asked, error))
}
