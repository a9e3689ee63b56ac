//! An area: what the address map knows about one piece of claimed address space.

use crate::allocator::Allocator;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The part of a claim that blocks lie in, cut into units of one size, and who owns them.
///
/// Lookups read the bounds of whatever area the map leads to, without a lock. An area with slots of its own is used
/// again by later claims of those slots. A lookup that comes while that happens asks for an address at which no block
/// of ours lives, and any mix of old and new values serves it.
#[repr(C)]
pub(crate) struct Area {
    /// The address of unit 0.
    base: AtomicUsize,
    /// Bytes of a unit, as a power of two.
    unit_shift: AtomicU32,
    /// Units that the claim has room for; none once the area is closed.
    capacity: AtomicU32,
    /// The allocator that all units belong to.
    owner: *const dyn Allocator,
    /// Whether the owner is gone, and blocks live here that nobody takes back.
    orphaned: AtomicBool,
}

impl Area {
    /// Makes an area in its place.
    ///
    /// # Safety
    /// The bounds at `at` are valid and contain no unit; nobody uses the rest of it.
    pub(crate) unsafe fn make(
        at: *mut Self,
        owner: *const dyn Allocator,
        (base, unit_shift, capacity): (usize, u32, u32),
    ) {
        // SAFETY: the caller's promise; what lookups may read at the same time is atomic and written as such.
        unsafe {
            (&raw mut (*at).owner).write(owner);
            (&raw mut (*at).orphaned).write(AtomicBool::new(false));
            (*at).base.store(base, Relaxed);
            (*at).unit_shift.store(unit_shift, Relaxed);
            (*at).capacity.store(capacity, Relaxed);
        }
    }

    /// Lets no lookup find a unit here any more.
    pub(crate) fn close(&self) {
        self.base.store(0, Relaxed);
        self.unit_shift.store(0, Relaxed);
        self.capacity.store(0, Relaxed);
    }

    /// Gives up an area in which blocks live: they stay, and belong to nobody.
    pub(crate) fn orphan(&self) {
        self.orphaned.store(true, Release);
    }

    /// The owner, unless it is gone.
    #[inline]
    pub(crate) fn owner(&self) -> Option<*const dyn Allocator> {
        (!self.orphaned.load(Acquire)).then_some(self.owner)
    }

    /// The address of unit 0.
    #[inline]
    pub(crate) fn base(&self) -> usize {
        self.base.load(Relaxed)
    }

    /// Bytes of a unit, as a power of two.
    #[inline]
    pub(crate) fn unit_shift(&self) -> u32 {
        self.unit_shift.load(Relaxed)
    }

    /// Units that the claim has room for.
    #[inline]
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity.load(Relaxed)
    }

    /// The unit that `address` lies in, if it is one of the area's.
    #[inline]
    pub(crate) fn unit_of(&self, address: usize) -> Option<u32> {
        let unit = address.wrapping_sub(self.base()) >> self.unit_shift();
        (unit < self.capacity() as usize).then_some(unit as u32)
    }
}
