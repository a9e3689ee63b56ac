//! From an address to its segment, without a lock: the address space in slots of 64 GiB.
//!
//! Where the system lets us claim whole slots, a slot leads to its one segment; a slot that segments share with other
//! people's memory leads to the list of such segments. A foreign address costs a load and a branch.

use crate::allocator::Allocator;
use crate::heap::segment::Segment;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Bytes of a slot, as a power of two.
pub(crate) const SLOT_SHIFT: u32 = 36;
/// Slots: 48 bits of address.
pub(crate) const SLOTS: usize = 1 << (48 - SLOT_SHIFT);
/// What stands in a slot that is not one segment's alone.
const SHARED: *mut Segment = without_provenance_mut(1);

static MAP: [AtomicPtr<Segment>; SLOTS] = [const { AtomicPtr::new(null_mut()) }; SLOTS];
static SHARED_SEGMENTS: AtomicPtr<Segment> = AtomicPtr::new(null_mut());

#[inline(always)]
fn slot(address: usize) -> &'static AtomicPtr<Segment> {
    &MAP[(address >> SLOT_SHIFT) & (SLOTS - 1)]
}

/// The segment and the unit that hold `address`, if it is ours.
#[inline]
pub(crate) fn find(address: usize) -> Option<(&'static Segment, u32)> {
    let mut at = slot(address).load(Acquire);
    let shared = at == SHARED;
    if shared {
        at = SHARED_SEGMENTS.load(Acquire);
    }
    while !at.is_null() {
        // SAFETY: what the map leads to is a segment. Segments with living blocks stay (law 8), shared ones always;
        // whoever asks holds a block there, or asks about memory that no segment covers.
        let segment = unsafe { &*at };
        if let Some(unit) = segment.unit_of(address).filter(|_| !shared || !segment.gone.load(Relaxed)) {
            return Some((segment, unit));
        }
        at = if shared { segment.next.load(Acquire) } else { null_mut() };
    }
    None
}

/// Whether no segment reaches into the slot of `address`: then it is nobody's of ours.
#[inline(always)]
pub fn is_foreign(address: usize) -> bool {
    slot(address).load(Acquire).is_null()
}

/// The allocator whose block lies at `address`, if it lies in a segment.
#[inline]
pub fn owner(address: usize) -> Option<&'static dyn Allocator> {
    // SAFETY: an allocator outlives its segments, and a segment its blocks (law 8).
    find(address).map(|(segment, _)| unsafe { &*segment.owner })
}

/// The same, shared.
///
/// # Safety
/// A living block lies at `address`, if it lies in a segment at all. (Every owner of segments lives in an [`Arc`].)
pub unsafe fn shared_owner(address: usize) -> Option<Arc<dyn Allocator>> {
    let (segment, _) = find(address)?;
    // SAFETY: the owner outlives its living block (caller), and came from an Arc, as all owners do.
    unsafe {
        Arc::increment_strong_count(segment.owner);
        Some(Arc::from_raw(segment.owner))
    }
}

fn slots_of(claim: (usize, usize)) -> std::ops::RangeInclusive<usize> {
    (claim.0 >> SLOT_SHIFT)..=((claim.0 + claim.1 - 1) >> SLOT_SHIFT)
}

/// Whether all of some slots are empty.
pub(crate) fn is_empty(first: usize, count: usize) -> bool {
    (first..first + count).all(|index| index < SLOTS && MAP[index].load(Relaxed).is_null())
}

/// Enters a segment that has its slots to itself. Callers are serialised by the claim's lock.
pub(crate) fn enter(segment: &Segment) {
    for index in slots_of(segment.claim) {
        MAP[index & (SLOTS - 1)].store(std::ptr::from_ref(segment).cast_mut(), Release);
    }
}

/// Enters a segment among other people's memory, for ever. Callers are serialised by the claim's lock.
pub(crate) fn enter_shared(segment: &Segment) {
    segment.next.store(SHARED_SEGMENTS.load(Relaxed), Relaxed);
    SHARED_SEGMENTS.store(std::ptr::from_ref(segment).cast_mut(), Release);
    for index in slots_of(segment.claim) {
        MAP[index & (SLOTS - 1)].store(SHARED, Release);
    }
}

/// Removes a segment; one among other people's memory stays in the list. Callers are serialised by the claim's lock.
pub(crate) fn leave(segment: &Segment) {
    if !segment.open_by_need {
        return segment.gone.store(true, Relaxed);
    }
    for index in slots_of(segment.claim) {
        MAP[index & (SLOTS - 1)].store(null_mut(), Release);
    }
}
