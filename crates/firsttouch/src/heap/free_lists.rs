//! The free spans of a segment by size class: last freed first, best fit among the first few.

use crate::heap::class;
use crate::heap::segment::{Lists, NONE, Segment, State};

/// Number of spans of a class that are examined for the best fit.
const LOOK: usize = 64;

/// Which set of lists: spans with dirty units, or clean ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Clean = 0,
    Dirty = 1,
}

impl Segment {
    #[allow(clippy::mut_from_ref)] // exclusive by the lock, see below
    fn lists(&self, side: Side) -> &mut Lists {
        // SAFETY: the heap's lock is held (`list`, `unlist` and `find`), and no other reference to these lists lives
        // (law 6).
        unsafe { &mut *self.lists[side as usize].as_ptr() }
    }

    /// Marks a span as free, with `dirty` dirty units, and puts it at the head of its list.
    pub(crate) fn list(&self, start: u32, len: u32, dirty: u32) {
        let side = if dirty > 0 { Side::Dirty } else { Side::Clean };
        let tag = State::Free as u32 | (side as u32) << 2 | dirty << 3;
        let lists = self.lists(side);
        let class = class::of(len);
        let next = lists.heads[class];
        self.record(start + len - 1).set(len, tag, NONE, NONE);
        self.record(start).set(len, tag, next, NONE);
        if next != NONE {
            self.record(next).prev.set(start);
        }
        lists.heads[class] = start;
        lists.filled[class / 64] |= 1 << (class % 64);
    }

    /// Removes the free span at `start` from its list. Returns its length and its number of dirty units.
    pub(crate) fn unlist(&self, start: u32) -> (u32, u32) {
        let record = self.record(start);
        let (len, tag, next, prev) = (record.len.get(), record.tag.get(), record.next.get(), record.prev.get());
        let side = if tag & 4 != 0 { Side::Dirty } else { Side::Clean };
        let lists = self.lists(side);
        let class = class::of(len);
        if prev == NONE {
            lists.heads[class] = next;
            if next == NONE {
                lists.filled[class / 64] &= !(1 << (class % 64));
            }
        } else {
            self.record(prev).next.set(next);
        }
        if next != NONE {
            self.record(next).prev.set(prev);
        }
        (len, tag >> 3)
    }

    /// The best fit among the first spans of at least `len` units on one side.
    pub(crate) fn find(&self, side: Side, len: u32) -> Option<u32> {
        let lists = self.lists(side);
        let mut class = class::of(len);
        while class < class::COUNT {
            let rest = lists.filled[class / 64] >> (class % 64);
            if rest == 0 {
                class = (class / 64 + 1) * 64;
                continue;
            }
            class += rest.trailing_zeros() as usize;
            if let Some(found) = self.best_in_list(lists.heads[class], len) {
                return Some(found);
            }
            class += 1; // the class of `len` itself may hold only shorter spans
        }
        None
    }

    fn best_in_list(&self, head: u32, len: u32) -> Option<u32> {
        let mut best: Option<(u32, u32)> = None;
        let mut unit = head;
        for _ in 0..LOOK {
            if unit == NONE {
                break;
            }
            let its = self.record(unit).len.get();
            if its == len {
                return Some(unit);
            }
            if its > len && best.is_none_or(|(shortest, _)| its < shortest) {
                best = Some((its, unit));
            }
            unit = self.record(unit).next.get();
        }
        best.map(|(_, unit)| unit)
    }
}
