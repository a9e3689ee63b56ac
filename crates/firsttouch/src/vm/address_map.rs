//! From an address to its segment, without a lock: the address space in slots of 64 GiB.
//!
//! Where the system lets us claim whole slots, a slot leads to its one segment. A slot in which segments lie among other
//! people's memory leads to a table of its granules, each of which is one segment's alone or nobody's. A foreign address
//! costs a load and a branch, and every lookup two loads at most, however many segments there are.

use crate::allocator::Allocator;
use crate::heap::segment::Segment;
use crate::os::{self, Errno};
use std::ptr::{null_mut, with_exposed_provenance_mut, without_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Bytes of a slot, as a power of two.
pub(crate) const SLOT_SHIFT: u32 = 36;
/// Slots: 48 bits of address.
pub(crate) const SLOTS: usize = 1 << (48 - SLOT_SHIFT);
/// Bytes of a granule.
pub(crate) const GRANULE: usize = 1 << GRANULE_SHIFT;
const GRANULE_SHIFT: u32 = 20;
/// A mixed slot's entry: the address of its table, and this bit. Without a table no segment lies in it, but blocks of
/// ours do that lie in none.
const MIXED: usize = 1;

/// The granules of a slot. Once made it stays: what a lookup reads is a table for ever.
type Table = [AtomicPtr<Segment>; 1 << (SLOT_SHIFT - GRANULE_SHIFT)];

static MAP: [AtomicPtr<Segment>; SLOTS] = [const { AtomicPtr::new(null_mut()) }; SLOTS];

#[inline(always)]
fn slot(address: usize) -> &'static AtomicPtr<Segment> {
    &MAP[(address >> SLOT_SHIFT) & (SLOTS - 1)]
}

#[inline(always)]
fn is_mixed(entry: *mut Segment) -> bool {
    entry.addr() & MIXED != 0
}

/// The table behind a mixed slot's entry.
#[inline]
fn table(entry: *mut Segment) -> Option<&'static Table> {
    let table: *const Table = entry.map_addr(|addr| addr & !MIXED).cast();
    // SAFETY: the entry is a mixed slot's: nothing, or a table, which is mapped for ever.
    unsafe { table.as_ref() }
}

#[inline]
fn granule(address: usize) -> usize {
    (address & ((1 << SLOT_SHIFT) - 1)) >> GRANULE_SHIFT
}

/// The segment and the unit that hold `address`, if it is ours.
#[inline]
pub(crate) fn find(address: usize) -> Option<(&'static Segment, u32)> {
    let mut at = slot(address).load(Acquire);
    if is_mixed(at) {
        at = table(at)?[granule(address)].load(Acquire);
    }
    if at.is_null() {
        return None;
    }
    // SAFETY: a header of a segment with its own slots is never unmapped. Any other lies in its segment's claim, and so
    // does `address` then, whose granules are the segment's alone: a block of ours lives there, which keeps the segment
    // open (law 8), or the caller asks about memory that nobody has.
    let unit = unsafe { (*at).bounds.unit_of(address) }?;
    // SAFETY: as above; the bounds are those of an open segment.
    Some((unsafe { &*at }, unit))
}

/// Whether no block of ours lies in the slot of `address`: then it is somebody else's.
#[inline(always)]
pub fn is_foreign(address: usize) -> bool {
    slot(address).load(Acquire).is_null()
}

/// Says that a block of ours that lies in no segment may live at `address`, so that its slot is not taken for foreign.
#[inline]
pub(crate) fn note_outside(address: usize) {
    let slot = slot(address);
    if slot.load(Relaxed).is_null() {
        let _ = slot.compare_exchange(null_mut(), without_provenance_mut(MIXED), Release, Relaxed);
    }
}

/// The same for a range that is not empty.
pub(crate) fn note_outside_all(range: std::ops::Range<usize>) {
    slots_of((range.start, range.len())).for_each(|slot| note_outside(slot << SLOT_SHIFT));
}

/// Whose the segment is that holds an address.
#[derive(Clone, Copy)]
pub enum Holder {
    /// No segment does.
    Nobody,
    /// An allocator that is gone: what lives there stays for ever.
    Gone,
    /// This one.
    Allocator(&'static dyn Allocator),
}

/// Whose block lies at `address`, if it lies in a segment.
#[inline]
pub fn holder(address: usize) -> Holder {
    match find(address) {
        None => Holder::Nobody,
        Some((segment, _)) if segment.orphaned.load(Acquire) => Holder::Gone,
        // SAFETY: an allocator outlives its segments, and a segment its blocks (law 8).
        Some((segment, _)) => Holder::Allocator(unsafe { &*segment.owner }),
    }
}

/// The allocator whose block lies at `address`, if it lies in a segment.
#[inline]
pub fn owner(address: usize) -> Option<&'static dyn Allocator> {
    if let Holder::Allocator(owner) = holder(address) { Some(owner) } else { None }
}

/// The same, shared.
///
/// # Safety
/// A living block lies at `address`, if it lies in a segment at all. (Every owner of segments lives in an [`Arc`].)
pub unsafe fn shared_owner(address: usize) -> Option<Arc<dyn Allocator>> {
    let owner: *const dyn Allocator = owner(address)?;
    // SAFETY: the owner outlives its living block (caller), and came from an Arc, as all owners do.
    unsafe {
        Arc::increment_strong_count(owner);
        Some(Arc::from_raw(owner))
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

/// Enters a segment among other people's memory; its claim is whole granules. Where a table can't be had nothing
/// changes. Callers are serialised by the claim's lock.
pub(crate) fn enter_shared(segment: &Segment) -> Result<(), Errno> {
    for index in slots_of(segment.claim) {
        let slot = &MAP[index & (SLOTS - 1)];
        if table(slot.load(Relaxed)).is_none() {
            // It reads zero: no granule is anybody's.
            let made = with_exposed_provenance_mut::<Segment>(os::map_anywhere(size_of::<Table>())?);
            slot.store(made.map_addr(|addr| addr | MIXED), Release);
        }
    }
    set_granules(segment, std::ptr::from_ref(segment).cast_mut());
    Ok(())
}

fn set_granules(segment: &Segment, to: *mut Segment) {
    let (at, size) = segment.claim;
    for address in (at..at + size).step_by(GRANULE) {
        if let Some(table) = table(slot(address).load(Relaxed)) {
            table[granule(address)].store(to, Release);
        }
    }
}

/// Removes a segment. Callers are serialised by the claim's lock.
pub(crate) fn leave(segment: &Segment) {
    if !segment.open_by_need {
        return set_granules(segment, null_mut());
    }
    for index in slots_of(segment.claim) {
        MAP[index & (SLOTS - 1)].store(null_mut(), Release);
    }
}
