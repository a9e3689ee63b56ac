//! Bytes that nobody should write, in the gaps that alignment leaves beside a block.

use super::room::Room;
use std::ptr::with_exposed_provenance_mut;

/// Differs from its neighbours and is rarely what a program writes; never zero, so that a search for a text's lost end
/// goes on to the guard.
fn canary(address: usize) -> u8 {
    (address as u8).wrapping_mul(0x3B) ^ 0xC5 | 1
}

/// Puts canaries beside the block.
///
/// # Safety
/// The room is accessible, and only its block is anybody's.
pub(super) unsafe fn put(room: &Room) {
    for gap in room.gaps() {
        for address in gap {
            // SAFETY: the caller's promise: the gaps lie on the block's pages, beside it.
            unsafe { with_exposed_provenance_mut::<u8>(address).write(canary(address)) };
        }
    }
}

/// A byte beside the block that was written, if any was: the nearest behind it, or else before it.
///
/// # Safety
/// As for [`put`], which was called.
pub(super) unsafe fn damage(room: &Room) -> Option<usize> {
    let changed = |&at: &usize| {
        // SAFETY: as for `put`; whoever else writes there does what is looked for here.
        unsafe { with_exposed_provenance_mut::<u8>(at).read_volatile() != canary(at) }
    };
    let [mut before, mut behind] = room.gaps();
    behind.find(changed).or_else(|| before.rfind(changed))
}
