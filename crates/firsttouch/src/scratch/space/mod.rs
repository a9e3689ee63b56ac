//! A stretch of memory that blocks are bumped in: a freed block on top lowers the top, others are holes that are joined
//! with their neighbours and used again. What is written down lies apart (law 4); the caller holds the buffer's lock.

mod history;
mod holes;
mod record;

use super::backing::Damage;
use crate::layout::round_up;
use history::History;
use holes::Holes;
use record::{Record, Records};
use std::ptr::NonNull;

pub(super) use history::FREED;
pub(super) use record::{GRANULE, Owner};

/// See the module. Invariants: two holes never touch each other, and none touches the top.
pub(super) struct Space {
    base: NonNull<u8>,
    granules: u32,
    /// Granules below are blocks or holes.
    top: u32,
    /// Granules below were used before.
    high: u32,
    /// Whether memory that was never used reads zero.
    zero: bool,
    /// Number of living blocks.
    pub blocks: u32,
    /// Ticks of the caretaker since it was known to be used.
    pub quiet: u8,
    records: Records,
    holes: Holes,
    /// In debug mode; and what it found first.
    history: Option<History>,
    damage: Option<Damage>,
}

// SAFETY: a space is the only one that hands its memory out, from whatever thread.
unsafe impl Send for Space {}

/// A block that was just taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub address: NonNull<u8>,
    pub size: usize,
    /// Bytes from the begin on that may not read zero.
    pub dirty: usize,
}

/// Granules for `size` bytes, at least one.
#[inline]
pub(super) fn granules(size: usize) -> Option<u32> {
    u32::try_from(round_up(size.max(1), GRANULE)? / GRANULE).ok()
}

impl Space {
    /// The whole granules of some memory, or nothing where there is no memory to write down what happens there.
    ///
    /// # Safety
    /// The memory is readable and writable, and nobody else's, as long as the space or one of its blocks lives; where
    /// `zero`, it reads zero.
    pub(super) unsafe fn new(address: NonNull<u8>, size: usize, zero: bool, debug: bool) -> Option<Self> {
        let skip = address.as_ptr().align_offset(GRANULE).min(size);
        let granules = u32::try_from((size - skip) / GRANULE).unwrap_or(u32::MAX - 1);
        let records = Records::new(granules)?;
        let history = if debug { Some(History::new(granules)?) } else { None };
        // SAFETY: not more than the size is skipped.
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

    /// Bytes of the largest gap.
    pub(super) fn gap(&self) -> usize {
        self.longest().max(self.granules - self.top) as usize * GRANULE
    }

    #[inline]
    fn address(&self, at: u32) -> NonNull<u8> {
        // SAFETY: inside the memory, or one past its end.
        unsafe { self.base.add(at as usize * GRANULE) }
    }

    /// Granules from `at` to the next multiple of `align` bytes.
    #[inline]
    fn padding(&self, at: u32, align: usize) -> u32 {
        if align <= GRANULE {
            return 0;
        }
        let address = self.address(at).as_ptr() as usize;
        ((address.wrapping_neg() & (align - 1)) / GRANULE).min(u32::MAX as usize) as u32
    }

    /// The granule where the living block at `address` begins, if one does.
    #[inline]
    pub(super) fn find_block(&self, address: usize) -> Option<u32> {
        let offset = address.wrapping_sub(self.start());
        let at = offset / GRANULE;
        let is = offset.is_multiple_of(GRANULE) && at < self.top as usize && self.records.begins(at as u32);
        is.then_some(at as u32)
    }

    /// Takes a block out of a hole or from the top. `thoroughly`: every hole is looked at.
    #[inline]
    pub(super) fn take(&mut self, need: u32, align: usize, owner: Owner, thoroughly: bool) -> Option<Taken> {
        let start = match self.find(need, align, thoroughly) {
            Some(hole) => self.take_from_hole(hole, need, align, owner),
            None => self.take_from_top(need, align, owner)?,
        };
        self.records.set_begins(start, true);
        self.blocks += 1;
        let end = start + need;
        if self.history.is_some() {
            self.unwipe(start..end);
        }
        let dirty = if self.zero { self.high.clamp(start, end) - start } else { need };
        self.high = self.high.max(end);
        let bytes = |granules: u32| granules as usize * GRANULE;
        Some(Taken { address: self.address(start), size: bytes(need), dirty: bytes(dirty) })
    }

    fn take_from_hole(&mut self, hole: u32, need: u32, align: usize, owner: Owner) -> u32 {
        let len = self.unlist(hole);
        let skip = self.padding(hole, align);
        let (start, behind) = (hole + skip, len - skip - need);
        if skip > 0 {
            self.list(hole, skip);
        }
        if behind > 0 {
            self.list(start + need, behind);
        } else {
            self.records.change(start + need).set_hole_below(false);
        }
        self.records.write(start, Record::block(need, owner, skip > 0));
        start
    }

    #[inline]
    fn take_from_top(&mut self, need: u32, align: usize, owner: Owner) -> Option<u32> {
        let skip = self.padding(self.top, align);
        if u64::from(skip) + u64::from(need) > u64::from(self.granules - self.top) {
            return None;
        }
        let start = self.top + skip;
        if skip > 0 {
            self.list(self.top, skip);
        }
        self.records.write(start, Record::block(need, owner, skip > 0));
        self.top = start + need;
        Some(start)
    }

    /// Takes the block at granule `at` back; its bytes and whose it was.
    #[inline]
    pub(super) fn give(&mut self, at: u32) -> (usize, Owner) {
        let record = self.records.get(at);
        self.records.set_begins(at, false);
        self.blocks -= 1;
        if self.history.is_some() {
            self.wipe(at..at + record.len, record.owner().site);
        }
        self.vacate(at, record.len, record.hole_below());
        (record.len as usize * GRANULE, record.owner())
    }

    /// Joins granules that no block lies on any more with the holes around them, or with what is above the top.
    fn vacate(&mut self, start: u32, len: u32, hole_below: bool) {
        let (mut start, mut end) = (start, start + len);
        if hole_below {
            start -= self.records.get(start - 1).len;
            self.unlist(start);
        }
        if end == self.top {
            self.top = start;
            return;
        }
        if !self.records.begins(end) {
            end += self.unlist(end);
        }
        self.list(start, end - start);
        self.records.change(end).set_hole_below(true);
    }

    /// Bytes of the block at granule `at`, and whose it is.
    #[inline]
    pub(super) fn block(&self, at: u32) -> (usize, Owner) {
        let record = self.records.get(at);
        (record.len as usize * GRANULE, record.owner())
    }

    /// Changes the size of the block at granule `at`, if it can stay.
    pub(super) fn resize(&mut self, at: u32, need: u32) -> bool {
        let len = self.records.get(at).len;
        let end = at + len;
        if need < len {
            self.records.change(at).len = need;
            if self.history.is_some() {
                self.wipe(at + need..end, self.records.get(at).owner().site);
            }
            self.vacate(at + need, len - need, false);
            return true;
        }
        let more = need - len;
        if more == 0 {
            return true;
        }
        if end == self.top {
            if more > self.granules - self.top {
                return false;
            }
            self.top += more;
        } else {
            if self.records.begins(end) || self.records.get(end).len < more {
                return false;
            }
            let free = self.unlist(end);
            if free > more {
                self.list(end + more, free - more);
            } else {
                self.records.change(end + more).set_hole_below(false);
            }
        }
        if self.history.is_some() {
            self.unwipe(end..at + need);
        }
        self.records.change(at).len = need;
        self.high = self.high.max(at + need);
        true
    }

    /// Calls `each` with address, bytes and owner of every living block, while it answers `true`.
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
