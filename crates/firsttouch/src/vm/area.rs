//! An area: what the address map knows about one piece of claimed address space.

use crate::allocator::Allocator;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

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
