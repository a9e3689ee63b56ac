//! The layout of a block, its guard and its canaries within a block of the upstream.

use super::Side;
use crate::allocator::Request;
use crate::layout::{round_down, round_up};
use crate::os;
use std::ops::Range;

/// The size to request from the upstream, and the offsets of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub total: usize,
    pub align: usize,
    /// The offset and size of the inaccessible pages.
    guard: usize,
    guard_size: usize,
    /// The bounds of the block's pages, and of the block itself.
    first: usize,
    end: usize,
    start: usize,
}

impl Plan {
    /// The guard occupies a unit of its own: a page, or a huge page if the block may lie on huge pages. `None` if the
    /// total size overflows.
    pub(super) fn new(side: Side, request: Request, unit: usize) -> Option<Self> {
        let (size, align) = (request.size(), request.align());
        let least = align.max(unit);
        match side {
            Side::After => {
                let end = round_up(size, unit)?;
                // Aligned, because the end and the unit are. No larger than the block's pages.
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

    /// Bytes before the guard that are only there for alignment.
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

/// A block and its guard at their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// The address of the upstream's block.
    pub base: usize,
    pub guard: usize,
    pub guard_size: usize,
    first: usize,
    end: usize,
    pub address: usize,
    pub asked: usize,
}

impl Room {
    /// The pages of the block and its guard, which are adjacent.
    pub(super) fn pages(&self) -> Range<usize> {
        self.first.min(self.guard)..self.end.max(self.guard + self.guard_size)
    }

    /// The unused bytes on the block's first and last page, which hold the canaries.
    pub(super) fn gaps(&self) -> [Range<usize>; 2] {
        let page = os::page_size();
        let (start, stop) = (self.address, self.address + self.asked);
        [round_down(start, page).max(self.first)..start, stop..round_up(stop, page).unwrap_or(stop).min(self.end)]
    }

    /// The same block with `size` bytes; `None` if a new block would end nearer to the guard or to the end of its
    /// pages.
    pub(super) fn resized(&self, size: usize) -> Option<Self> {
        let stop = self.address.checked_add(size).filter(|&stop| stop <= self.end)?;
        let before = self.guard < self.first;
        let gap = self.end - stop;
        let near = if before { os::page_size() } else { (self.end - self.address - self.asked + 1).max(64) };
        (gap < near && size > 0).then_some(Self { asked: size, ..*self })
    }
}
