//! The block in a used span, as the span's first record keeps it.

/// The requested size in bytes, where in the span the block begins, and a note of its allocator, packed in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occupant(u64);

impl Occupant {
    const ASKED_BITS: u32 = 48;
    const OFFSET_BITS: u32 = 8;
    const LINE: usize = 64;

    /// No block.
    pub(crate) const NONE: Self = Self(0);

    /// A block of `asked` bytes; its offset is less than 16 KiB and a multiple of a cache line.
    #[inline]
    pub(crate) fn new(asked: usize, offset: usize, note: u8) -> Self {
        let lines = (offset / Self::LINE) as u64;
        Self(asked as u64 | lines << Self::ASKED_BITS | u64::from(note) << (Self::ASKED_BITS + Self::OFFSET_BITS))
    }

    #[inline]
    pub(crate) fn asked(self) -> usize {
        (self.0 & ((1 << Self::ASKED_BITS) - 1)) as usize
    }

    #[inline]
    pub(crate) fn offset(self) -> usize {
        (self.0 >> Self::ASKED_BITS) as usize % (1 << Self::OFFSET_BITS) * Self::LINE
    }

    /// The allocator's note.
    pub(crate) fn note(self) -> u8 {
        (self.0 >> (Self::ASKED_BITS + Self::OFFSET_BITS)) as u8
    }

    /// The low and the high 32 bits.
    #[inline]
    pub(crate) fn halves(self) -> (u32, u32) {
        (self.0 as u32, (self.0 >> 32) as u32)
    }

    #[inline]
    pub(crate) fn from_halves(low: u32, high: u32) -> Self {
        Self(u64::from(low) | u64::from(high) << 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_offset_and_note_survive_the_halves() {
        for (asked, offset, note) in [(1, 0, 0), (u32::MAX as usize + 7, 3520, 255), ((1 << 47) - 1, 16320, 3)] {
            let (low, high) = Occupant::new(asked, offset, note).halves();
            let found = Occupant::from_halves(low, high);
            assert_eq!((found.asked(), found.offset(), found.note()), (asked, offset, note));
        }
    }
}
