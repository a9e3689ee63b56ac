//! Which units of a segment were seen at home with every page: one bit each, out of band, on machines with several nodes.
//!
//! Whoever uses a unit or the heap's lock sets and clears its bit; others may use its neighbours', so words are atomic.

use crate::heap::segment::{self, Segment};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// How often somebody moved pages.
static MOVES: AtomicU32 = AtomicU32::new(0);

/// Bytes of the bits of `units`.
pub(crate) const fn bytes(units: usize) -> usize {
    units.div_ceil(64) * 8
}

impl Segment {
    /// The words of some units, and the bits in each that are theirs.
    #[inline]
    fn proofs(&self, start: u32, len: u32) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let (start, end) = (start as usize, if self.proofs.is_null() { 0 } else { (start + len) as usize });
        (start / 64..end.div_ceil(64)).map(move |word| {
            let low = start.saturating_sub(word * 64);
            let high = (end - word * 64).min(64);
            let mask = (u64::MAX << low) & (u64::MAX >> (64 - high));
            // SAFETY: units below `top` have bits, which live as long as the segment.
            (unsafe { &*self.proofs.add(word) }, mask)
        })
    }

    /// Whether all of some units were seen at home, or nobody looks.
    #[inline]
    pub(crate) fn is_proven(&self, start: u32, len: u32) -> bool {
        self.proofs(start, len).all(|(word, mask)| word.load(Relaxed) & mask == mask)
    }

    /// They were seen at home.
    pub(crate) fn prove(&self, start: u32, len: u32) {
        for (word, mask) in self.proofs(start, len) {
            word.fetch_or(mask, Relaxed);
        }
    }

    /// Nothing is known of them any more.
    pub(crate) fn doubt(&self, start: u32, len: u32) {
        for (word, mask) in self.proofs(start, len) {
            word.fetch_and(!mask, Relaxed);
        }
    }

    /// Their pages went, and they are `age` now.
    pub(crate) fn empty(&self, start: u32, len: u32, age: u8) {
        self.ages(start, len).fill(age);
        self.doubt(start, len);
    }
}

/// How often somebody moved pages, for who keeps blocks that lie in no segment.
pub(crate) fn moves() -> u32 {
    MOVES.load(Relaxed)
}

/// Pages of somebody's block may have moved to another node.
pub(crate) fn doubt(address: usize, size: usize) {
    MOVES.fetch_add(1, Relaxed);
    let Some((segment, first)) = segment::find(address) else { return };
    let last = segment.unit_of(address + size.max(1) - 1).unwrap_or(first).min(segment.top.get().saturating_sub(1));
    segment.doubt(first, (last + 1).saturating_sub(first));
}
