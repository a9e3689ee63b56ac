//! What is written down of a block or a hole, apart from its memory (law 4): one record for each granule, of which only
//! those at the ends are in use. Nothing is ever read that was not written before.

use std::mem::MaybeUninit;

/// Bytes of a granule; blocks are whole granules.
pub(in crate::scratch) const GRANULE: usize = 64;
/// Ends a list of holes.
pub(super) const NONE: u32 = u32::MAX;
/// A block's tag: its scope in the lower bits; whether a hole lies below it.
const HOLE_BELOW: u32 = 1 << 31;
const OWNER: u32 = HOLE_BELOW - 1;

/// Whose a block is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::scratch) struct Owner {
    /// The scope's place in its list, less than `1 << 31`.
    pub slot: u32,
    /// The number of the line that asked.
    pub site: u64,
}

/// The first record of a block has all fields; that of a hole `len`, `next` and `prev`; the last record of a hole `len`.
#[derive(Clone, Copy, Default)]
pub(super) struct Record {
    pub len: u32,
    pub tag: u32,
    /// Of a hole: its neighbours in the list. Of a block: the site's halves.
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

/// The records of a space, and a bit for each granule that says whether a live block begins there.
pub(super) struct Records {
    records: Vec<MaybeUninit<Record>>,
    begins: Vec<u64>,
}

impl Records {
    /// Room for `granules`, or nothing where there is no memory for that.
    pub(super) fn new(granules: u32) -> Option<Self> {
        let (count, words) = (granules as usize, (granules as usize).div_ceil(64));
        let (mut records, mut begins) = (Vec::<MaybeUninit<Record>>::new(), Vec::new());
        records.try_reserve_exact(count).ok()?;
        begins.try_reserve_exact(words).ok()?;
        // SAFETY: there is room for them, and they need not be written. (They are not even touched: most never are.)
        unsafe { records.set_len(count) };
        begins.resize(words, 0);
        Some(Self { records, begins })
    }

    #[inline]
    pub(super) fn get(&self, at: u32) -> Record {
        // SAFETY: only the ends of blocks and holes are looked at, and each was written when it became one.
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

    /// Whether a live block begins there.
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
