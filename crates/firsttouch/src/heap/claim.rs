//! Claims of address space.
//!
//! A claim of whole slots maps almost nothing: it takes empty slots of the address map, and later each extent is
//! mapped at its exact address. So a segment can grow contiguously, and unused address space costs nothing (RLIMIT_AS,
//! overcommit). If the kernel does not grant such addresses (a small address space, an emulator), a claim of just the
//! needed size is mapped anywhere.

use crate::address_map::{Area, GRANULE, SLOT_SHIFT};
use crate::os::Errno;
use crate::pages::mapping::map_aligned;
use crate::sync::lock::{Guard, Lock};
use crate::{address_map, os};
use std::ptr::{NonNull, null_mut};

/// The slots that may be claimed: from 16 TiB to 40 TiB, below whatever Linux places by itself. (On x86-64 mappings
/// begin at 42 TiB if the stack size is unlimited, and programs have their heap at 85 TiB. On arm64 they begin at a quarter
/// of the address space, which is at 32 TiB where it has 47 bits, as with pages of 16 KiB.) ThreadSanitizer has its shadow
/// there, and leaves programs the first 2 TiB.
const CLAIMABLE_TIB: (usize, usize) = if cfg!(tsan) {
    (1, 2)
} else if cfg!(target_arch = "aarch64") {
    (16, 32)
} else {
    (16, 40)
};
const FIRST_SLOT: usize = CLAIMABLE_TIB.0 << (40 - SLOT_SHIFT);
const LAST_SLOT: usize = CLAIMABLE_TIB.1 << (40 - SLOT_SHIFT);
/// Their number.
pub(crate) const CLAIMABLE: usize = LAST_SLOT - FIRST_SLOT;
/// The size of a slot in bytes.
pub(crate) const SLOT: usize = 1 << SLOT_SHIFT;

/// The number of slots that are tried before whole slots are given up.
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
    // SAFETY: `hold` acquired it, as the fork handlers (`purger`) do before they call this.
    unsafe { NEXT_SLOT.release() }
}

/// A claimed range of address space.
#[derive(Clone, Copy)]
pub(crate) struct Claim {
    /// The first address.
    pub base: usize,
    /// The size in bytes.
    pub size: usize,
    /// The number of bytes from the start that were mapped when it was claimed.
    pub mapped: usize,
}

impl Claim {
    /// Whether the claim has slots of its own, mapped on demand. Otherwise it consists of whole granules among foreign
    /// memory, all mapped, so that no foreign memory can come to lie in them.
    #[inline]
    pub(crate) fn has_slots(&self) -> bool {
        self.mapped < self.size
    }

    /// The index of its first slot among the [`CLAIMABLE`] ones.
    pub(crate) fn slot(&self) -> usize {
        (self.base >> SLOT_SHIFT) - FIRST_SLOT
    }

    fn range(&self) -> (usize, usize) {
        (self.base, self.size)
    }
}

/// The right to change claims.
pub(crate) struct Claims(Guard<'static, usize>);

/// Acquires that right.
pub(crate) fn lock() -> Claims {
    let mut next = NEXT_SLOT.lock();
    if *next == 0 {
        *next = FIRST_SLOT + os::seed() % (last_slot() - FIRST_SLOT).max(1);
    }
    Claims(next)
}

impl Claims {
    /// Claims adjacent slots and maps their first page, which shows whether the kernel grants such addresses. The
    /// slots are taken once they are [entered](Self::enter).
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
    /// If the system has no room for them, or for the tables of the address map.
    pub(crate) fn granules(&mut self, size: usize, align: usize) -> Result<Claim, Errno> {
        let (base, _) = map_aligned(size, align.max(GRANULE))?;
        address_map::make_mixed((base, size)).inspect_err(|_| {
            // SAFETY: it was just mapped and is not in use.
            let _ = unsafe { os::unmap(base, size) };
        })?;
        Ok(Claim { base, size, mapped: size })
    }

    /// Enters an area, so that lookups find it in its claim.
    ///
    /// # Safety
    /// The claim was just made. The area stays readable: permanently if the claim has slots of its own, otherwise
    /// while a block in it is live.
    pub(crate) unsafe fn enter(&mut self, claim: &Claim, area: NonNull<Area>) {
        // SAFETY: the claim was just made, for one heap alone, and the area stays readable while a lookup may find it
        // (`heap/building.rs`).
        unsafe { set(claim, area.as_ptr()) }
    }

    /// Ends a claim: lookups no longer find its area. This must come first, before foreign memory can be mapped there.
    /// The caller unmaps what is mapped in the claim before it gives up the right to change claims.
    pub(crate) fn leave(&mut self, claim: &Claim) {
        // SAFETY: the claim is that of a heap that is being dropped (`heap/building.rs`), and nothing needs to stay
        // readable.
        unsafe { set(claim, null_mut()) }
        if claim.has_slots() {
            *self.0 = claim.base >> SLOT_SHIFT;
        }
    }
}

/// # Safety
/// As for [`Claims::enter`].
unsafe fn set(claim: &Claim, area: *mut Area) {
    // SAFETY: as for `Claims::enter`, the area stays readable (`enter` and `leave`).
    unsafe {
        match claim.has_slots() {
            true => address_map::set_slots(claim.range(), area),
            false => address_map::set_granules(claim.range(), area),
        }
    }
}

/// One past the last slot that may be claimed.
fn last_slot() -> usize {
    LAST_SLOT.min(FIRST_SLOT.saturating_add(os::claimable_slots()))
}
