//! The out-of-band records of blocks and holes (law 4): one for each granule, of which only the first and last of a
//! block or hole are in use. No record is read before it was written.

use std::mem::MaybeUninit;

/// The granularity of blocks in bytes.
pub(in crate::scratch) const GRANULE: usize = 64;
/// Marks the end of a list of holes.
pub(super) const NONE: u32 = u32::MAX;
/// In a block's tag, which holds its scope in the lower bits: a hole lies below the block.
const HOLE_BELOW: u32 = 1 << 31;
const OWNER: u32 = HOLE_BELOW - 1;

/// Who requested a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::scratch) struct Owner {
    /// The index of the scope, less than `1 << 31`.
    pub slot: u32,
    /// The number of the requesting source line.
    pub site: u64,
}

/// The first record of a block uses all fields; that of a hole `len`, `next` and `prev`; the last record of a hole
/// `len`.
#[derive(Clone, Copy, Default)]
pub(super) struct Record {
    pub len: u32,
    pub tag: u32,
    /// Of a hole: its neighbors in the list. Of a block: the two halves of the site.
    pub next: u32,
    pub prev: u32,
}

impl Record {
    pub(super) fn block(len: u32, owner: Owner, hole_below: bool) -> Self {
        let tag = owner.slot & OWNER | if hole_below { HOLE_BELOW } else { 0 };
        Self { len, tag, next: owner.site as u32, prev: (owner.site >> 32) as u32 }
    }

    pub(super) fn owner(&self) -> Owner {
        Owner { slot: self.tag & OWNER, site: u64::from(self.next) | u64::from(self.prev) << 32 }
    }

    pub(super) fn hole_below(&self) -> bool {
        self.tag & HOLE_BELOW != 0
    }

    pub(super) fn set_hole_below(&mut self, is: bool) {
        self.tag = self.tag & OWNER | if is { HOLE_BELOW } else { 0 };
    }
}

/// The records of a space, and a bit for each granule that tells whether a live block begins there.
pub(super) struct Records {
    records: Vec<MaybeUninit<Record>>,
    begins: Vec<u64>,
}

impl Records {
    /// Reserves records for `granules`; `None` if there is no memory for them.
    pub(super) fn new(granules: u32) -> Option<Self> {
        let (count, words) = (granules as usize, (granules as usize).div_ceil(64));
        let (mut records, mut begins) = (Vec::<MaybeUninit<Record>>::new(), Vec::new());
        records.try_reserve_exact(count).ok()?;
        begins.try_reserve_exact(words).ok()?;
        // SAFETY: there is capacity for them, and they may be uninitialized. (Most are never touched.)
        unsafe { records.set_len(count) };
        begins.resize(words, 0);
        Some(Self { records, begins })
    }

    #[inline]
    pub(super) fn get(&self, at: u32) -> Record {
        // SAFETY: only the records at the ends of blocks and holes are read, and they were written when the block or
        // hole was created.
        unsafe { self.records[at as usize].assume_init() }
    }

    #[inline]
    pub(super) fn change(&mut self, at: u32) -> &mut Record {
        // SAFETY: as above.
        unsafe { self.records[at as usize].assume_init_mut() }
    }

    #[inline]
    pub(super) fn write(&mut self, at: u32, record: Record) {
        self.records[at as usize].write(record);
    }

    /// Whether a live block begins at granule `at`.
    #[inline]
    pub(super) fn begins(&self, at: u32) -> bool {
        self.begins[at as usize / 64] >> (at % 64) & 1 != 0
    }

    #[inline]
    pub(super) fn set_begins(&mut self, at: u32, is: bool) {
        let (word, bit) = (&mut self.begins[at as usize / 64], 1 << (at % 64));
        *word = if is { *word | bit } else { *word & !bit };
    }
}
