//! The map from an address to its owner, without a lock: the address space in slots of 1 GiB.
//!
//! A segment claims whole slots, and these lead to it. So a foreign address costs a load and a branch, and a lookup one load,
//! however many segments there are.

#![allow(unsafe_code)] // Safety: the map leads to headers of segments, which are never unmapped.

use crate::allocator::Allocator;
use crate::heap::segment::Segment;
use std::ptr::{from_ref, null_mut, without_provenance_mut};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The size of a slot in bytes, as a power of two.
pub const SLOT_SHIFT: u32 = 30;
/// The number of slots, for addresses of 47 bits. Two that differ in higher bits alone share one; a segment knows its bounds.
const SLOTS: usize = 1 << (47 - SLOT_SHIFT);
/// The entry of a slot that contains no segment, but blocks of ours outside all segments.
const OUTSIDE: *mut Segment = without_provenance_mut(1);

static MAP: [AtomicPtr<Segment>; SLOTS] = [const { AtomicPtr::new(null_mut()) }; SLOTS];

#[inline(always)]
fn slot(address: usize) -> &'static AtomicPtr<Segment> {
    &MAP[(address >> SLOT_SHIFT) & (SLOTS - 1)]
}

/// The segment and the unit that contain `address`, if it is ours.
#[inline]
pub(crate) fn find(address: usize) -> Option<(&'static Segment, u32)> {
    let segment = slot(address).load(Acquire);
    if segment <= OUTSIDE {
        return None;
    }
    // SAFETY: an entry above `OUTSIDE` is the address of a segment's header, which is never unmapped.
    let segment = unsafe { &*segment };
    Some((segment, segment.unit_of(address)?))
}

/// The segment whose claim begins with a slot.
pub(crate) fn segment_at(slot: usize) -> Option<&'static Segment> {
    let segment = MAP[slot].load(Acquire);
    // SAFETY: an entry that is an address is that of a segment's header, which is never unmapped.
    (segment.addr() == slot << SLOT_SHIFT && slot > 0).then(|| unsafe { &*segment })
}

/// Whether no block of ours lies in the slot of `address`, so that the address is foreign.
#[inline(always)]
pub fn is_foreign(address: usize) -> bool {
    slot(address).load(Acquire).is_null()
}

/// Records that a block of ours outside all segments may be live at `address`, so that its slot is not taken for foreign. This
/// is never undone. It costs a foreign block of the slot a lookup; claims lie where the system places nothing.
#[inline]
pub(crate) fn note_outside(address: usize) {
    let slot = slot(address);
    if slot.load(Relaxed).is_null() {
        let _ = slot.compare_exchange(null_mut(), OUTSIDE, Release, Relaxed);
    }
}

/// Calls [`note_outside`] for each slot of a range that is not empty.
pub(crate) fn note_outside_all(range: std::ops::Range<usize>) {
    slots_of((range.start, range.len())).for_each(|slot| note_outside(slot << SLOT_SHIFT));
}

/// The allocator that owns the memory at `address`, if that is ours and it exists, as it does while a block lives there.
#[inline]
pub fn owner(address: usize) -> Option<*const dyn Allocator> {
    find(address)?.0.owner_pointer()
}

fn slots_of((at, size): (usize, usize)) -> std::ops::RangeInclusive<usize> {
    (at >> SLOT_SHIFT)..=((at + size - 1) >> SLOT_SHIFT)
}

/// Whether `count` slots from `first` on are all empty.
pub(crate) fn is_empty(first: usize, count: usize) -> bool {
    (first..first + count).all(|slot| MAP[slot].load(Relaxed).is_null())
}

/// Lets the slots of a range lead to a segment. Callers are serialized by the claims' lock.
pub(crate) fn set_slots(range: (usize, usize), segment: &'static Segment) {
    slots_of(range).for_each(|slot| MAP[slot].store(from_ref(segment).cast_mut(), Release));
}
