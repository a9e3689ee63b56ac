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
use crate::heap::segment::{
    CLEAN, FIRST_EPOCH, Fresh, Occupant, PageKind, Segment, Shape, SpanState, UNMAPPED, next_epoch,
};
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
    /// For base pages and for huge ones. Who holds both acquired them in this order.
    pub(crate) regions: [Lock<Region>; 2],
    /// Held during a purge, so that none is half done at a fork. Acquired before those of `regions`.
    pub(crate) purging: Lock<()>,
    /// The age of units that are freed now; advanced by the background purger's ticks.
    epoch: AtomicU8,
    owner: OnceLock<Owner>,
}

impl Heap {
    /// A heap that serves the threads of a node.
    pub(crate) fn new(node: u8) -> Self {
        Self {
            regions: [Shape::small(node), Shape::huge(node)].map(|shape| Lock::new(Region::new(shape))),
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

    pub(crate) fn region(&self, kind: PageKind) -> Guard<'_, Region> {
        self.regions[kind as usize].lock()
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
        let mut region = self.region(kind);
        loop {
            if let Some(span) = region.take(bytes, align, &sides, fresh)? {
                return Ok(span);
            }
            region.grow(bytes, align, fresh, owner)?;
        }
    }

    /// Frees all but the first `keep` units of a used span.
    pub(crate) fn shrink(&self, span: Span, keep: u32) {
        let epoch = self.epoch();
        let mut region = self.region(span.kind());
        span.segment.cut(span.start, keep);
        region.give(Span { start: span.start + keep, len: span.len - keep, ..span }, epoch);
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
        let mut region = self.region(to.kind());
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

    pub(crate) fn held(&self) -> Held {
        let of = |region: &Lock<Region>| {
            let Region { out, dirty, leaving, mapped, .. } = *region.lock();
            Held { out, dirty, leaving, mapped }
        };
        of(&self.regions[0]) + of(&self.regions[1])
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
        self.regions.iter().for_each(Lock::hold);
    }

    /// Ends [`Heap::hold`].
    ///
    /// # Safety
    /// The locks are held by `hold`.
    pub(crate) unsafe fn release(&self) {
        // SAFETY: `hold` acquired it, as the fork handlers (`fork.rs`) do before they call this.
        unsafe {
            self.regions.iter().for_each(|region| region.release());
            self.purging.release();
        }
    }

    /// Closes all segments. If any block is live they stay permanently (law 8), without an owner.
    ///
    /// # Safety
    /// The heap is not used any more.
    pub(crate) unsafe fn close(&self) {
        let regions = self.regions.each_ref().map(|region| region.lock());
        let alive = regions.iter().any(|region| region.out > 0);
        for segment in regions.iter().flat_map(|region| region.segments()) {
            if alive {
                segment.area.orphan();
                continue;
            }
            // SAFETY: no block in it is live, and none will be: the heap is not used any more (drops of its owners).
            unsafe { claim::close(segment) };
        }
    }
}

/// The live block of a heap that begins at `address`. A wrong address is told from a block by its requested size, which is zero
/// for a freed span and for an address at which no span ever began.
#[inline]
fn occupant_at(address: usize) -> Option<(&'static Segment, u32, Occupant)> {
    let (segment, unit) = segment::find(address)?;
    if unit >= segment.top.get() || segment.state(unit) != SpanState::Used {
        return None;
    }
    let occupant = segment.occupant(unit);
    let begins_here = occupant.asked() != 0 && address == segment.address(unit) + occupant.offset();
    begins_here.then_some((segment, unit, occupant))
}

/// Whether a live block of a heap begins at `address`.
pub(crate) fn lives(address: usize) -> bool {
    occupant_at(address).is_some()
}

/// Marks the block at `address`, if it is a heap's: a keeper lists it, or cuts it into blocks of its own.
pub(crate) fn mark_listed(address: usize) {
    if let Some((segment, unit, occupant)) = occupant_at(address) {
        segment.set_occupant(unit, occupant.listed());
    }
}

/// Whether a live block of a heap begins at `address` that was not marked.
#[inline]
pub(crate) fn is_unlisted(address: usize) -> bool {
    occupant_at(address).is_some_and(|(.., occupant)| !occupant.is_listed())
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
