//! The locality bitmap of a segment, on machines with several nodes: one bit, out of band, for each unit of which all
//! pages were found on the local node.
//!
//! A bit belongs to the holder of its unit or of the heap's lock. Neighbouring bits may be set and cleared at the same
//! time, so words are atomic.

use crate::heap::segment::{self, Segment};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// How often pages were moved.
static MOVES: AtomicU32 = AtomicU32::new(0);

/// Bytes of the bits of `units`.
pub(crate) const fn bytes(units: usize) -> usize {
    units.div_ceil(64) * 8
}

impl Segment {
    /// The words of some units, and the bits in each that are theirs.
    #[inline]
    fn words(&self, start: u32, len: u32) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let (start, end) = (start as usize, if self.locality.is_null() { 0 } else { (start + len) as usize });
        (start / 64..end.div_ceil(64)).map(move |word| {
            let low = start.saturating_sub(word * 64);
            let high = (end - word * 64).min(64);
            let mask = (u64::MAX << low) & (u64::MAX >> (64 - high));
            // SAFETY: units below `top` have bits, which live as long as the segment.
            (unsafe { &*self.locality.add(word) }, mask)
        })
    }

    /// Whether all of some units are known to be local, or locality does not matter.
    #[inline]
    pub(crate) fn is_known_local(&self, start: u32, len: u32) -> bool {
        self.words(start, len).all(|(word, mask)| word.load(Relaxed) & mask == mask)
    }

    /// Records that all pages of some units are local.
    pub(crate) fn set_local(&self, start: u32, len: u32) {
        for (word, mask) in self.words(start, len) {
            word.fetch_or(mask, Relaxed);
        }
    }

    /// Forgets where the pages of some units are.
    pub(crate) fn clear_local(&self, start: u32, len: u32) {
        for (word, mask) in self.words(start, len) {
            word.fetch_and(!mask, Relaxed);
        }
    }

    /// The pages of some units are gone, and their age is `age` now.
    pub(crate) fn empty(&self, start: u32, len: u32, age: u8) {
        self.ages(start, len).fill(age);
        self.clear_local(start, len);
    }
}

/// How often pages were moved, for allocators that keep blocks outside segments.
pub(crate) fn moves() -> u32 {
    MOVES.load(Relaxed)
}

/// Forgets where the pages of a range are, because they may move to another node.
pub(crate) fn forget(address: usize, size: usize) {
    MOVES.fetch_add(1, Relaxed);
    let Some((segment, first)) = segment::find(address) else { return };
    let last = segment.unit_of(address + size.max(1) - 1).unwrap_or(first).min(segment.top.get().saturating_sub(1));
    segment.clear_local(first, (last + 1).saturating_sub(first));
}
