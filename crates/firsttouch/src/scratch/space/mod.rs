//! A range of memory with bump allocation: freeing the topmost block lowers the top; other freed blocks become holes,
//! which are joined with their neighbors and reused. Records are kept out of band (law 4); the caller holds the
//! buffer's lock.

mod giving;
mod history;
mod holes;
#[cfg(test)]
mod invariants;
mod record;
mod taking;

use super::backing::Damage;
use crate::layout::round_up;
use history::History;
use holes::Holes;
use record::Records;
use std::ptr::NonNull;

pub(super) use history::FREED;
pub(super) use record::{GRANULE, Owner};

/// See the module. Invariants: two holes never touch each other, and none touches the top.
pub(super) struct Space {
    base: NonNull<u8>,
    granules: u32,
    /// All granules below are blocks or holes.
    top: u32,
    /// All granules below were used before.
    high: u32,
    /// Whether memory that was never used reads zero.
    zero: bool,
    /// Number of live blocks.
    pub blocks: u32,
    /// Ticks of the background purger since it was last known to be in use.
    pub quiet: u8,
    records: Records,
    holes: Holes,
    /// Only in debug mode; and the first damage found.
    history: Option<History>,
    damage: Option<Damage>,
}

// SAFETY: only the space hands out its memory, from whatever thread.
unsafe impl Send for Space {}

/// A block that was just allocated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub address: NonNull<u8>,
    pub size: usize,
    /// The number of bytes from the start that may not read zero.
    pub dirty: usize,
}

/// The number of granules for `size` bytes, at least one.
#[inline]
pub(super) fn granules(size: usize) -> Option<u32> {
    u32::try_from(round_up(size.max(1), GRANULE)? / GRANULE).ok()
}

impl Space {
    /// Creates a space on the whole granules of some memory; `None` if there is no memory for the records.
    ///
    /// # Safety
    /// While the space or one of its blocks is live, the memory is readable, writable, and not used otherwise; if
    /// `zero`, it reads zero.
    pub(super) unsafe fn new(address: NonNull<u8>, size: usize, zero: bool, debug: bool) -> Option<Self> {
        let skip = address.as_ptr().align_offset(GRANULE).min(size);
        let granules = u32::try_from((size - skip) / GRANULE).unwrap_or(u32::MAX - 1);
        let records = Records::new(granules)?;
        let history = if debug { Some(History::new(granules)?) } else { None };
        // SAFETY: no more than `size` bytes are skipped.
        let base = unsafe { address.add(skip) };
        let holes = Holes::new();
        Some(Self { base, granules, top: 0, high: 0, zero, blocks: 0, quiet: 0, records, holes, history, damage: None })
    }

    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(super) fn start(&self) -> usize {
        self.base.as_ptr() as usize
    }

    pub(super) fn bytes(&self) -> usize {
        self.granules as usize * GRANULE
    }

    /// The size of the largest gap in bytes.
    pub(super) fn gap(&self) -> usize {
        self.longest().max(self.granules - self.top) as usize * GRANULE
    }

    #[inline]
    fn address(&self, at: u32) -> NonNull<u8> {
        // SAFETY: inside the memory, or one past its end.
        unsafe { self.base.add(at as usize * GRANULE) }
    }

    /// The number of granules from `at` to the next multiple of `align` bytes.
    #[inline]
    fn padding(&self, at: u32, align: usize) -> u32 {
        if align <= GRANULE {
            return 0;
        }
        let address = self.address(at).as_ptr() as usize;
        ((address.wrapping_neg() & (align - 1)) / GRANULE).min(u32::MAX as usize) as u32
    }

    /// The granule at which the live block at `address` begins, if there is one.
    #[inline]
    pub(super) fn find_block(&self, address: usize) -> Option<u32> {
        let offset = address.wrapping_sub(self.start());
        let at = offset / GRANULE;
        let is = offset.is_multiple_of(GRANULE) && at < self.top as usize && self.records.begins(at as u32);
        is.then_some(at as u32)
    }

    /// The size in bytes and the owner of the block at granule `at`.
    #[inline]
    pub(super) fn block(&self, at: u32) -> (usize, Owner) {
        let record = self.records.get(at);
        (record.len as usize * GRANULE, record.owner())
    }

    /// Calls `each` with the address, size and owner of every live block, as long as it returns `true`.
    pub(super) fn walk(&self, mut each: impl FnMut(usize, usize, Owner) -> bool) {
        let mut at = 0;
        while at < self.top {
            let record = self.records.get(at);
            let size = record.len as usize * GRANULE;
            if self.records.begins(at) && !each(self.address(at).as_ptr() as usize, size, record.owner()) {
                return;
            }
            at += record.len;
        }
    }
}
