//! A heap: the spans of one allocator, in a region for base pages and one for huge pages. From a request to the system it
//! is this file, `growing.rs` (regions, and the memory mapped in them) and `os`.

#![allow(unsafe_code)] // Safety: records lie outside the memory they describe, and each field names the lock it needs.

pub mod c_library;
pub(crate) mod claim;
pub(crate) mod growing;
pub mod purger;
pub(crate) mod purging;
pub(crate) mod segment;
#[cfg(test)]
mod tests;

use crate::address_map::find;
use crate::allocator::{AllocError, Allocator};
use crate::heap::growing::{Region, Span};
use crate::heap::segment::{Fresh, Occupant, PageKind, UNMAPPED, huge_page};
use crate::os::{self, Errno};
use crate::sync::lock::{Guard, Lock, RawLock};
pub use purging::map_anew;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Bytes of memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    /// Handed out.
    pub out: usize,
    /// Free and dirty, and not on their way back to the system.
    pub dirty: usize,
    /// Mapped.
    pub mapped: usize,
}

pub(crate) struct Heap {
    /// For base pages and for huge ones. Who holds both acquired them in this order.
    pub(crate) regions: [Lock<Region>; 2],
    /// Held during a purge, so that none is half done at a fork. Acquired before those of `regions`.
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
        Self {
            regions: [PageKind::Base, PageKind::Huge].map(|kind| Lock::new(Region::new(kind, node))),
            purging: Lock::new(()),
            owner,
        }
    }

    pub(crate) fn region(&self, kind: PageKind) -> Guard<'_, Region> {
        self.regions[kind as usize].lock()
    }

    /// Allocates a span from what is free, if possible with dirty memory, or from new address space; what is mapped for it comes
    /// on the pages that `fresh` says. Also returns how many of its bytes are dirty.
    pub(crate) fn take_or_grow(
        &self,
        kind: PageKind,
        bytes: usize,
        align: usize,
        fresh: Fresh,
    ) -> Result<(Span, usize), Errno> {
        let mut region = self.region(kind);
        loop {
            if let Some(taken) = region.take(bytes, align, true, fresh)? {
                return Ok(taken);
            }
            region.grow(bytes, align, fresh, self.owner)?;
        }
    }

    /// Frees all but the first `keep` units of a used span in `epoch`.
    pub(crate) fn shrink(&self, span: Span, keep: u32, epoch: u8) {
        let mut region = self.region(span.kind());
        span.segment.cut(span.start, keep);
        region.give(Span { segment: span.segment, start: span.start + keep, len: span.len - keep }, epoch);
    }

    /// Moves the pages of a used span to the beginning of another one of at least `bytes`, and frees the first: nothing is copied,
    /// and no page is there twice. Returns the other span, and how many of its bytes were dirty. `None`, and the block is where it
    /// was, if there is no such span, or the system does not move the pages.
    ///
    /// # Safety
    /// Nobody uses the span meanwhile.
    pub(crate) unsafe fn carry(&self, from: Span, bytes: usize, align: usize, fresh: Fresh) -> Option<(Span, usize)> {
        // Once the system has refused, it is not asked again, as each question costs the pages of a target: Linux moves none before
        // 5.7, and before 6.17 none that lie in several mappings, as those of a block that was moved and grew.
        static REFUSES: AtomicBool = AtomicBool::new(false);
        if REFUSES.load(Relaxed) {
            return None;
        }
        // Huge pages stay whole where they come to lie as before.
        let align = if from.address().is_multiple_of(huge_page()) { align.max(huge_page()) } else { align };
        let (to, dirty) = self.take_or_grow(from.kind(), bytes, align, fresh).ok()?;
        // The kernel unmaps the target before it refuses, and moves some pages only: in a hole, what is mapped then was moved.
        // Nothing that the kernel places comes to lie in it (`claim::PLACES`); others would have to ask for this very address
        // between the two calls.
        // SAFETY: both spans are mapped, and used by nobody: one was just taken, the other is the caller's.
        let has_hole = unsafe { os::decommit(to.address(), from.bytes()) }.is_ok();
        // SAFETY: as above.
        if has_hole && unsafe { os::remap(from.address(), to.address(), from.bytes()) }.is_ok() {
            from.segment.set_occupant(from.start, Occupant::NONE);
            self.give_back(from);
            return Some((to, dirty));
        }
        REFUSES.store(true, Relaxed);
        let mut region = self.region(to.kind());
        if has_hole {
            to.segment.ages(to.start, from.len).fill(UNMAPPED);
            region.mapped -= from.bytes();
        }
        let dirty = to.segment.count_dirty(to.start, to.len);
        region.out -= to.bytes();
        region.dirty += to.segment.bytes(dirty);
        to.segment.give(to.start, to.len, dirty);
        None
    }

    /// Adds what the heap holds.
    pub(crate) fn add_held(&self, sum: &mut Held) {
        for region in &self.regions {
            let Region { out, dirty, mapped, .. } = *region.lock();
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
        let alive = regions.iter().any(|region| region.out > 0);
        for segment in regions.iter().flat_map(|region| &region.segments) {
            if alive {
                segment.orphan();
                continue;
            }
            // SAFETY: no block in it is live, and none will be: the heap is not used any more (drops of its owners).
            unsafe { claim::close(segment) };
        }
    }
}

/// The live block of a heap that begins at `address`, and its span. A wrong address is told from a block by its requested
/// size, which is zero for a freed span and for an address at which no span ever began.
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

/// The error for a request of `asked` bytes that the system refused with `error`.
#[cold]
pub(crate) fn refused(asked: usize, error: Errno) -> AllocError {
    AllocError::new(asked, os::why_refused(asked, error))
}
