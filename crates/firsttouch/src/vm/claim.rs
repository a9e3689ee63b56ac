//! Claiming address space.
//!
//! A claim of whole slots maps next to nothing: empty slots of the address map are taken, and every opening asks the
//! kernel for that very address. So there is room to grow in one piece, and it costs no address space (RLIMIT_AS,
//! overcommit) before it is used. Where the kernel does not grant such addresses (a small address space, an emulator), a
//! claim of just the needed size is mapped wherever there is room.

use crate::os::{self, Errno};
use crate::pages::mapping::map_aligned;
use crate::sync::lock::{Guard, Lock};
use crate::vm::address_map::{self, GRANULE, SLOT_SHIFT};
use crate::vm::area::Area;
use std::ptr::{NonNull, null_mut};

/// Slots that may be claimed: from 16 TiB to 40 TiB, below whatever Linux places by itself. (On x86-64 mappings begin at
/// 42 TiB where the stack is unlimited, and programs with their heap lie at 85 TiB.)
const FIRST_SLOT: usize = 16 << (40 - SLOT_SHIFT);
const LAST_SLOT: usize = 40 << (40 - SLOT_SHIFT);
/// How many they are.
pub(crate) const CLAIMABLE: usize = LAST_SLOT - FIRST_SLOT;
/// Bytes of a slot.
pub(crate) const SLOT: usize = 1 << SLOT_SHIFT;

/// Slots that are tried before they are given up.
const TRIES: usize = 4;

/// The next slot to try; zero before the first.
static NEXT_SLOT: Lock<usize> = Lock::new(0);

/// Held around forks.
pub(crate) fn hold() {
    NEXT_SLOT.hold();
}

/// Ends [`hold`].
///
/// # Safety
/// The lock is held by `hold`.
pub(crate) unsafe fn release() {
    // SAFETY: the caller's promise.
    unsafe { NEXT_SLOT.release() }
}

/// A claimed range of address space.
#[derive(Clone, Copy)]
pub(crate) struct Claim {
    /// Its first address.
    pub base: usize,
    /// Its bytes.
    pub size: usize,
    /// Bytes that were mapped when it was claimed, from the first on.
    pub mapped: usize,
}

impl Claim {
    /// Whether it has slots to itself, to be mapped by need. Otherwise it is whole granules among other people's memory,
    /// all mapped: as long as they are, nobody else's memory lies in them.
    #[inline]
    pub(crate) fn has_slots(&self) -> bool {
        self.mapped < self.size
    }

    /// The number of its first slot among the [`CLAIMABLE`] ones.
    pub(crate) fn slot(&self) -> usize {
        (self.base >> SLOT_SHIFT) - FIRST_SLOT
    }

    fn range(&self) -> (usize, usize) {
        (self.base, self.size)
    }
}

/// The right to change what is claimed.
pub(crate) struct Claims(Guard<'static, usize>);

/// Waits for that right.
pub(crate) fn lock() -> Claims {
    let mut next = NEXT_SLOT.lock();
    if *next == 0 {
        *next = FIRST_SLOT + os::seed() % (last_slot() - FIRST_SLOT).max(1);
    }
    Claims(next)
}

impl Claims {
    /// Claims adjacent slots and maps their first page, which shows whether the kernel grants such addresses. They are
    /// taken once they are [entered](Self::enter).
    pub(crate) fn slots(&mut self, count: usize) -> Option<Claim> {
        let page = os::page_size();
        for _ in 0..TRIES {
            let base = self.empty_slots(count)? << SLOT_SHIFT;
            if os::map_at(base, page).is_ok() {
                return Some(Claim { base, size: count << SLOT_SHIFT, mapped: page });
            }
        }
        None
    }

    fn empty_slots(&mut self, count: usize) -> Option<usize> {
        let (next, last) = (&mut *self.0, last_slot());
        if count > last - FIRST_SLOT {
            return None;
        }
        for _ in FIRST_SLOT..last {
            if *next + count > last {
                *next = FIRST_SLOT;
            }
            let first = *next;
            *next += 1;
            if address_map::is_empty(first, count) {
                *next += count - 1;
                return Some(first);
            }
        }
        None
    }

    /// Claims and maps `size` bytes, whole granules, at a multiple of `align`.
    ///
    /// # Errors
    /// Where the system has no room for them, or none for what the address map needs.
    pub(crate) fn granules(&mut self, size: usize, align: usize) -> Result<Claim, Errno> {
        let (base, _) = map_aligned(size, align.max(GRANULE))?;
        address_map::make_mixed((base, size)).inspect_err(|_| {
            // SAFETY: it was just mapped, and nobody knows it.
            let _ = unsafe { os::unmap(base, size) };
        })?;
        Ok(Claim { base, size, mapped: size })
    }

    /// Lets lookups find an area in its claim.
    ///
    /// # Safety
    /// The claim was just made. The area stays readable: for ever where it has slots to itself, otherwise as long as
    /// a block lives in it.
    pub(crate) unsafe fn enter(&mut self, claim: &Claim, area: NonNull<Area>) {
        // SAFETY: the claim is nobody else's, and the caller's promise.
        unsafe { set(claim, area.as_ptr()) }
    }

    /// Ends a claim: lookups no longer find its area. This comes first: nobody's memory can come to lie there before.
    /// What is mapped in it is the caller's to unmap, before it gives up the right to change claims.
    pub(crate) fn leave(&mut self, claim: &Claim) {
        // SAFETY: the claim is the caller's alone, and nothing need stay readable.
        unsafe { set(claim, null_mut()) }
        if claim.has_slots() {
            *self.0 = claim.base >> SLOT_SHIFT;
        }
    }
}

/// # Safety
/// As for [`Claims::enter`].
unsafe fn set(claim: &Claim, area: *mut Area) {
    // SAFETY: the caller's promise.
    unsafe {
        match claim.has_slots() {
            true => address_map::set_slots(claim.range(), area),
            false => address_map::set_granules(claim.range(), area),
        }
    }
}

/// Behind the last slot that may be claimed.
fn last_slot() -> usize {
    LAST_SLOT.min(FIRST_SLOT.saturating_add(os::claimable_slots()))
}
