//! Where a block, its guard and its canaries lie in what the upstream gives: arithmetic alone.

use super::Side;
use crate::allocator::Request;
use crate::layout::{round_down, round_up};
use crate::os;
use std::ops::Range;

/// What to ask the upstream for, and where the parts lie in it, from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub total: usize,
    pub align: usize,
    /// Where the inaccessible pages begin, and their bytes.
    guard: usize,
    guard_size: usize,
    /// Where the pages of the block begin and end, and the block itself.
    first: usize,
    end: usize,
    start: usize,
}

impl Plan {
    /// The guard takes a unit of its own: a page, or a huge page where the block may lie on huge pages. Nothing where
    /// the sum would pass every address space.
    pub(super) fn new(side: Side, request: Request, unit: usize) -> Option<Self> {
        let (size, align) = (request.size(), request.align());
        let least = align.max(unit);
        match side {
            Side::After => {
                let end = round_up(size, unit)?;
                // Aligned, as the end and the unit are; no larger than the block's pages.
                let start = end - round_up(size, align.min(unit))?;
                let total = end.checked_add(unit)?;
                Some(Self { total, align: least, guard: end, guard_size: unit, first: 0, end, start })
            }
            Side::Before => {
                let end = least.checked_add(round_up(size, os::page_size())?)?;
                let guard = least - unit;
                Some(Self { total: end, align: least, guard, guard_size: unit, first: least, end, start: least })
            }
        }
    }

    /// Bytes before the guard that only an alignment needs.
    pub(super) fn lead(&self) -> usize {
        if self.guard < self.first { self.guard } else { 0 }
    }

    pub(super) fn at(&self, base: usize, asked: usize) -> Room {
        Room {
            base,
            guard: base + self.guard,
            guard_size: self.guard_size,
            first: base + self.first,
            end: base + self.end,
            address: base + self.start,
            asked,
        }
    }
}

/// A block in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// What the upstream gave.
    pub base: usize,
    pub guard: usize,
    pub guard_size: usize,
    first: usize,
    end: usize,
    pub address: usize,
    pub asked: usize,
}

impl Room {
    /// The pages of the block and its guard, which lie side by side.
    pub(super) fn pages(&self) -> Range<usize> {
        self.first.min(self.guard)..self.end.max(self.guard + self.guard_size)
    }

    /// What lies unused on the block's first page and on its last: here the canaries sit.
    pub(super) fn gaps(&self) -> [Range<usize>; 2] {
        let page = os::page_size();
        let (start, stop) = (self.address, self.address + self.asked);
        [round_down(start, page).max(self.first)..start, stop..round_up(stop, page).unwrap_or(stop).min(self.end)]
    }

    /// The same block with `size` bytes, if its end is as near to the guard or to its pages' end as it would be anew.
    pub(super) fn resized(&self, size: usize) -> Option<Self> {
        let stop = self.address.checked_add(size).filter(|&stop| stop <= self.end)?;
        let before = self.guard < self.first;
        let gap = self.end - stop;
        let near = if before { os::page_size() } else { (self.end - self.address - self.asked + 1).max(64) };
        (gap < near && size > 0).then_some(Self { asked: size, ..*self })
    }
}
