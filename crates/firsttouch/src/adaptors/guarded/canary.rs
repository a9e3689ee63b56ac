//! Canaries: known bytes in the gaps that alignment leaves next to a block, which a program should never write.

use super::room::Room;
use std::ops::Range;
use std::ptr::with_exposed_provenance_mut;

/// Canaries repeat with this period, so that they can be written and compared in one call.
const PERIOD: usize = 256;
/// Bytes written or compared at a time: a page, because no gap is larger where pages are 4 KiB.
const PIECE: usize = 4096;

/// The canaries for any offset into the period.
static CANARIES: [u8; PIECE + PERIOD] = {
    let mut bytes = [0; PIECE + PERIOD];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = canary(at);
        at += 1;
    }
    bytes
};

/// Differs from its neighbors and is rarely what a program writes; never zero, so that a search for a missing
/// terminator runs into the guard.
const fn canary(address: usize) -> u8 {
    (address as u8).wrapping_mul(0x3B) ^ 0xC5 | 1
}

/// Splits a gap into pieces, each with its canaries.
fn pieces(gap: Range<usize>) -> impl Iterator<Item = (usize, &'static [u8])> {
    let end = gap.end;
    gap.step_by(PIECE).map(move |at| (at, &CANARIES[at % PERIOD..][..PIECE.min(end - at)]))
}

/// Writes canaries next to the block.
///
/// # Safety
/// The room is accessible, and only its block is in use.
pub(super) unsafe fn put(room: &Room) {
    for (at, canaries) in room.gaps().into_iter().flat_map(pieces) {
        // SAFETY: the room is accessible and only its block is in use (`Guarded::allocate` and `resize_in_place`): the
        // gaps lie on the block's pages, beside it.
        unsafe { with_exposed_provenance_mut::<u8>(at).copy_from_nonoverlapping(canaries.as_ptr(), canaries.len()) };
    }
}

/// Whether a gap is unmodified.
///
/// # Safety
/// As for [`put`], which was called.
unsafe fn is_whole(gap: Range<usize>) -> bool {
    // SAFETY: as for `put`. Compared by the C library, because other threads that write there are the bug to be found.
    pieces(gap).all(|(at, canaries)| unsafe {
        let there = with_exposed_provenance_mut::<u8>(at);
        libc::memcmp(there.cast(), canaries.as_ptr().cast(), canaries.len()) == 0
    })
}

/// Returns the address of a modified byte next to the block: the nearest behind it, otherwise one before it.
///
/// # Safety
/// As for [`put`], which was called.
pub(super) unsafe fn damage(room: &Room) -> Option<usize> {
    let [mut before, mut behind] = room.gaps();
    // SAFETY: `put` was called for the room (`guarded/mod.rs` and `take.rs`, for listed blocks).
    if unsafe { is_whole(before.clone()) && is_whole(behind.clone()) } {
        return None;
    }
    let changed = |&at: &usize| {
        // SAFETY: as above.
        unsafe { with_exposed_provenance_mut::<u8>(at).read_volatile() != canary(at) }
    };
    behind.find(changed).or_else(|| before.rfind(changed))
}
