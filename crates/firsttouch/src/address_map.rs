//! The map from an address to its owner, without a lock: the address space in slots of 64 GiB.
//!
//! If the system lets us claim whole slots, a slot leads to a single area. A slot in which areas lie among foreign
//! memory leads to a table of its granules, each of which belongs to one area or to none. A foreign address costs a
//! load and a branch, and a lookup at most two loads, however many areas there are.

#![allow(unsafe_code)] // Safety: the map leads to areas that stay readable.

use crate::allocator::Allocator;
use crate::os::{self, Errno};
use std::ptr::{NonNull, null_mut, with_exposed_provenance_mut, without_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};

/// The size of a slot in bytes, as a power of two.
pub(crate) const SLOT_SHIFT: u32 = 36;
/// The number of slots, for addresses of 48 bits.
pub(crate) const SLOTS: usize = 1 << (48 - SLOT_SHIFT);
/// The size of a granule in bytes.
pub(crate) const GRANULE: usize = 1 << GRANULE_SHIFT;
const GRANULE_SHIFT: u32 = 20;
/// The entry of a mixed slot is the address of its table, and this bit. Without a table the slot contains no area, but
/// blocks of ours outside all areas.
const MIXED: usize = 1;

/// The granules of a slot. A table is never freed, so lookups may read it at any time.
type Table = [AtomicPtr<Area>; 1 << (SLOT_SHIFT - GRANULE_SHIFT)];

static MAP: [AtomicPtr<Area>; SLOTS] = [const { AtomicPtr::new(null_mut()) }; SLOTS];

#[inline(always)]
fn slot(address: usize) -> &'static AtomicPtr<Area> {
    &MAP[(address >> SLOT_SHIFT) & (SLOTS - 1)]
}

#[inline(always)]
fn is_mixed(entry: *mut Area) -> bool {
    entry.addr() & MIXED != 0
}

/// The table in a mixed slot's entry.
#[inline]
fn table(entry: *mut Area) -> Option<&'static Table> {
    let table: *const Table = entry.map_addr(|addr| addr & !MIXED).cast();
    // SAFETY: the entry of a mixed slot is empty or a table, which is never unmapped.
    unsafe { table.as_ref() }
}

#[inline]
fn granule(address: usize) -> usize {
    (address & ((1 << SLOT_SHIFT) - 1)) >> GRANULE_SHIFT
}

/// The area and the unit that contain `address`, if it is ours.
#[inline]
pub(crate) fn find(address: usize) -> Option<(NonNull<Area>, u32)> {
    let mut at = slot(address).load(Acquire);
    if is_mixed(at) {
        at = table(at)?[granule(address)].load(Acquire);
    }
    let area = NonNull::new(at)?;
    // SAFETY: an area with its own slots is never unmapped. Any other lies in its own claim, and then so does
    // `address`, whose granules belong to that claim alone: either a live block of ours lies there, which keeps the
    // claim (law 8), or the caller asks about memory that is not in use.
    let unit = unsafe { area.as_ref() }.unit_of(address)?;
    Some((area, unit))
}

/// Whether no block of ours lies in the slot of `address`, so that the address is foreign.
#[inline(always)]
pub fn is_foreign(address: usize) -> bool {
    slot(address).load(Acquire).is_null()
}

/// Records that a block of ours outside all areas may be live at `address`, so that its slot is not taken for foreign.
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

/// The owner of the memory at an address.
#[derive(Clone, Copy)]
pub enum Holder {
    /// Not ours.
    Nobody,
    /// An allocator that no longer exists; its live blocks stay permanently.
    Gone,
    /// This allocator.
    Allocator(&'static dyn Allocator),
}

/// The owner of the memory at `address`.
#[inline]
pub fn holder(address: usize) -> Holder {
    let Some((area, _)) = find(address) else { return Holder::Nobody };
    // SAFETY: as in `find`.
    match unsafe { area.as_ref() }.owner() {
        None => Holder::Gone,
        // SAFETY: an allocator outlives its areas, and an area its blocks (law 8).
        Some(owner) => Holder::Allocator(unsafe { &*owner }),
    }
}

/// The allocator that owns the memory at `address`.
#[inline]
pub fn owner(address: usize) -> Option<&'static dyn Allocator> {
    if let Holder::Allocator(owner) = holder(address) { Some(owner) } else { None }
}

/// The same, as a shared reference.
///
/// # Safety
/// If the memory is ours, a live block lies at `address`. (Every owner of address space lives in an [`Arc`].)
pub unsafe fn shared_owner(address: usize) -> Option<Arc<dyn Allocator>> {
    let owner: *const dyn Allocator = owner(address)?;
    // SAFETY: the owner outlives its live block (`owners.rs`), and came from an Arc, as all owners do.
    unsafe {
        Arc::increment_strong_count(owner);
        Some(Arc::from_raw(owner))
    }
}

fn slots_of((at, size): (usize, usize)) -> std::ops::RangeInclusive<usize> {
    (at >> SLOT_SHIFT)..=((at + size - 1) >> SLOT_SHIFT)
}

/// Whether `count` slots from `first` on are all empty.
pub(crate) fn is_empty(first: usize, count: usize) -> bool {
    (first..first + count).all(|index| index < SLOTS && MAP[index].load(Relaxed).is_null())
}

/// Lets the slots of a range lead to an area, or to nothing. Callers are serialized by the claims' lock.
///
/// # Safety
/// No other area uses the slots. The area stays readable permanently.
pub(crate) unsafe fn set_slots(range: (usize, usize), area: *mut Area) {
    for index in slots_of(range) {
        MAP[index & (SLOTS - 1)].store(area, Release);
    }
}

/// Makes the slots of a range mixed. If there is no memory for a table, or the kernel placed the range in a slot that
/// belongs to an area, the slots before it keep their tables. Callers are serialized by the claims' lock.
pub(crate) fn make_mixed(range: (usize, usize)) -> Result<(), Errno> {
    for index in slots_of(range) {
        let slot = &MAP[index & (SLOTS - 1)];
        let entry = slot.load(Relaxed);
        if !entry.is_null() && !is_mixed(entry) {
            return Err(Errno::NO_MEMORY);
        }
        if table(entry).is_none() {
            // It reads zero: no granule belongs to an area.
            let made = with_exposed_provenance_mut::<Area>(os::map_anywhere(size_of::<Table>())?);
            slot.store(made.map_addr(|addr| addr | MIXED), Release);
        }
    }
    Ok(())
}

/// Lets the granules of a range in mixed slots lead to an area, or to nothing. Callers are serialized by the claims'
/// lock.
///
/// # Safety
/// No other area uses the granules. The area stays readable while they contain live blocks of ours.
pub(crate) unsafe fn set_granules((at, size): (usize, usize), area: *mut Area) {
    for address in (at..at + size).step_by(GRANULE) {
        if let Some(table) = table(slot(address).load(Relaxed)) {
            table[granule(address)].store(area, Release);
        }
    }
}

/// The part of a claim that contains blocks, divided into units of one size, and its owner.
///
/// Lookups read the bounds of the area that the map leads to without a lock. An area with slots of its own is reused
/// by later claims of those slots. A lookup during that time asks for an address at which no block of ours is live, so
/// any mix of old and new values is correct.
#[repr(C)]
pub(crate) struct Area {
    /// The address of unit 0.
    base: AtomicUsize,
    /// The size of a unit in bytes, as a power of two.
    unit_shift: AtomicU32,
    /// The number of units that the claim has room for; 0 once the area is closed.
    capacity: AtomicU32,
    /// The allocator that all units belong to.
    owner: *const dyn Allocator,
    /// Whether the owner no longer exists, so that the blocks here are never freed.
    orphaned: AtomicBool,
}

impl Area {
    /// Creates an area in place.
    ///
    /// # Safety
    /// The bounds at `at` are valid and contain no unit; the rest of it is not in use.
    pub(crate) unsafe fn make(
        at: *mut Self,
        owner: *const dyn Allocator,
        (base, unit_shift, capacity): (usize, u32, u32),
    ) {
        // SAFETY: the bounds at `at` are valid and contain no unit (`Segment::make`); the fields that
        // lookups may read concurrently are atomic and written atomically.
        unsafe {
            (&raw mut (*at).owner).write(owner);
            (&raw mut (*at).orphaned).write(AtomicBool::new(false));
            (*at).base.store(base, Relaxed);
            (*at).unit_shift.store(unit_shift, Relaxed);
            (*at).capacity.store(capacity, Relaxed);
        }
    }

    /// Closes the area, so that lookups find no unit in it.
    pub(crate) fn close(&self) {
        self.base.store(0, Relaxed);
        self.unit_shift.store(0, Relaxed);
        self.capacity.store(0, Relaxed);
    }

    /// Orphans an area with live blocks: they stay, without an owner.
    pub(crate) fn orphan(&self) {
        self.orphaned.store(true, Release);
    }

    /// The owner, unless it no longer exists.
    #[inline]
    pub(crate) fn owner(&self) -> Option<*const dyn Allocator> {
        (!self.orphaned.load(Acquire)).then_some(self.owner)
    }

    /// The address of unit 0.
    #[inline]
    pub(crate) fn base(&self) -> usize {
        self.base.load(Relaxed)
    }

    /// The size of a unit in bytes, as a power of two.
    #[inline]
    pub(crate) fn unit_shift(&self) -> u32 {
        self.unit_shift.load(Relaxed)
    }

    /// The number of units that the claim has room for.
    #[inline]
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity.load(Relaxed)
    }

    /// The unit that contains `address`, if it is in the area.
    #[inline]
    pub(crate) fn unit_of(&self, address: usize) -> Option<u32> {
        let unit = address.wrapping_sub(self.base()) >> self.unit_shift();
        (unit < self.capacity() as usize).then_some(unit as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel may place what others map, and then our own memory, in a slot that an area has.
    #[test]
    fn the_slot_of_an_area_never_becomes_mixed() {
        let (slot, beyond) = (3, 4); // where Linux places nothing
        let range = |slot: usize| (slot << SLOT_SHIFT, GRANULE);
        let area = with_exposed_provenance_mut(64);
        // SAFETY: nobody has memory there, so nobody looks.
        unsafe { set_slots(range(slot), area) };
        assert_eq!(make_mixed(range(slot)), Err(Errno::NO_MEMORY));
        assert_eq!(MAP[slot].load(Relaxed), area);
        assert_eq!(make_mixed(range(beyond)), Ok(()));
        let made = MAP[beyond].swap(null_mut(), Relaxed).map_addr(|addr| addr & !MIXED);
        // SAFETY: as above, so nobody looks at the table that was made either.
        unsafe {
            set_slots(range(slot), null_mut());
            os::unmap(made.expose_provenance(), size_of::<Table>()).unwrap();
        }
    }
}
