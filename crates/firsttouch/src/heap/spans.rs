//! Spans of units: split when allocated, joined with both neighbours when freed. Free ones are in lists by size class: last
//! freed first, best fit among the first few. This is bookkeeping only: mapping is up to the region. The caller holds the
//! heap's lock.

use crate::heap::segment::{FIRST_EPOCH, Lists, NONE, Segment, State, UNMAPPED};

impl Segment {
    fn mark_used(&self, start: u32, len: u32) {
        self.record(start + len - 1).set(len, State::Used as u32, 0, 0);
        self.record(start).set(len, State::Used as u32, 0, 0);
    }

    /// Allocates `len` units from one free span, of the first of `sides` that has one, so many bytes `before` a multiple of
    /// `align`. Returns the first unit, and how many of the units are dirty.
    pub(crate) fn take(&self, len: u32, (align, before): (usize, usize), sides: &[Side]) -> Option<(u32, u32)> {
        let extra = (align >> self.unit_shift()).saturating_sub(1) as u32;
        let wanted = len.checked_add(extra)?;
        let found = sides.iter().find_map(|&side| self.find(side, wanted))?;
        let (total, dirty) = self.unlist(found);
        let dirty_of = |start, len| match dirty {
            0 => 0,
            all if all == total => len,
            _ => self.count_dirty(start, len),
        };
        let from = self.address(found) + before;
        let padding = from.next_multiple_of(align) - from;
        let mut skip = (padding >> self.unit_shift()) as u32;
        if extra == 0 && (0 < dirty && dirty < total) {
            // Partly dirty: from the end that has more of the preferred kind, or where the dirty units begin.
            let (low, high) = (dirty_of(found, len), dirty_of(found + total - len, len));
            let from_above = if sides[0] == Side::Dirty { high > low } else { high < low };
            skip = if from_above { total - len } else { 0 };
            if sides[0] == Side::Dirty && low.max(high) < len.min(dirty) {
                let first = self.ages(found, total.min(LOOK_FOR_DIRTY)).iter().position(|&age| age >= FIRST_EPOCH);
                let begins = first.map_or(total, |first| first as u32);
                if begins <= total - len && dirty_of(found + begins, len) > low.max(high) {
                    skip = begins;
                }
            }
        }
        let start = found + skip;
        let behind = total - skip - len;
        let its = dirty_of(start, len);
        let before = if behind == 0 { dirty - its } else { dirty_of(found, skip) }; // a long span is counted in part
        if skip > 0 {
            self.list(found, skip, before);
        }
        if behind > 0 {
            self.list(start + len, behind, dirty - before - its);
        }
        self.mark_used(start, len);
        Some((start, its))
    }

    /// Frees used units, `dirty` of them dirty, and joins them with their free neighbours.
    pub(crate) fn give(&self, start: u32, len: u32, dirty: u32) {
        let (mut start, mut len, mut dirty) = (start, len, dirty);
        let end = start + len;
        if end < self.top.get() && self.state(end) == State::Free {
            let (more, its) = self.unlist(end);
            len += more;
            dirty += its;
        }
        if start > 0 && self.state(start - 1) == State::Free {
            let (more, its) = self.unlist(start - self.record(start - 1).len.get());
            start -= more;
            len += more;
            dirty += its;
        }
        self.list(start, len, dirty);
    }

    /// The start of the free span that ends at `unit`, or `unit` if there is none.
    pub(crate) fn free_before(&self, unit: u32) -> u32 {
        if unit > 0 && self.state(unit - 1) == State::Free { unit - self.record(unit - 1).len.get() } else { unit }
    }

    /// The end of the free span that starts at `unit`, or `unit` if there is none.
    pub(crate) fn free_behind(&self, unit: u32) -> u32 {
        if unit < self.top.get() && self.state(unit) == State::Free { unit + self.record(unit).len.get() } else { unit }
    }

    /// Splits the used span at `start` after `keep` units into two used spans.
    pub(crate) fn cut(&self, start: u32, keep: u32) {
        let (len, occupant) = (self.span_len(start), self.occupant(start));
        self.mark_used(start + keep, len - keep);
        self.mark_used(start, keep);
        self.set_occupant(start, occupant);
    }

    /// Marks the unmapped units of a used span as permanently used, and frees the rest.
    pub(crate) fn keep_out(&self, start: u32, len: u32) {
        let (mut at, end) = (start, start + len);
        while at < end {
            let ages = self.ages(at, end - at);
            let mapped = ages[0] != UNMAPPED;
            let run = ages.iter().take_while(|&&age| (age != UNMAPPED) == mapped).count() as u32;
            if at + run < end {
                self.cut(at, run);
            }
            if mapped {
                self.give(at, run, self.count_dirty(at, run));
            }
            at += run;
        }
    }

    /// Extends the used span at `start` to `len` units by the free units behind it. Returns how many of those are dirty.
    pub(crate) fn extend(&self, start: u32, len: u32) -> Option<u32> {
        let (old, occupant) = (self.span_len(start), self.occupant(start));
        let end = start + old;
        let more = len - old;
        if end >= self.top.get() || self.state(end) != State::Free || self.record(end).len.get() < more {
            return None;
        }
        let (free, dirty) = self.unlist(end);
        let its = self.count_dirty(end, more);
        if free > more {
            self.list(end + more, free - more, dirty - its);
        }
        self.mark_used(start, len);
        self.set_occupant(start, occupant);
        Some(its)
    }

    /// Turns a part of a free span into a used span; the rest stays free.
    pub(crate) fn carve(&self, span: u32, start: u32, len: u32) {
        let (total, dirty) = self.unlist(span);
        let behind = span + total - start - len;
        let (before, its) = (self.count_dirty(span, start - span), self.count_dirty(start, len));
        if start > span {
            self.list(span, start - span, before);
        }
        if behind > 0 {
            self.list(start + len, behind, dirty - before - its);
        }
        self.mark_used(start, len);
    }

    /// The free span that ends at the top, if there is one.
    pub(crate) fn free_at_top(&self) -> Option<(u32, u32)> {
        let top = self.top.get();
        if top == 0 || self.state(top - 1) != State::Free {
            return None;
        }
        let len = self.record(top - 1).len.get();
        Some((top - len, len))
    }

    /// Calls `visit` with every span in order of address until it returns `false`.
    pub(crate) fn walk(&self, mut visit: impl FnMut(u32, u32, State) -> bool) {
        let mut unit = 0;
        while unit < self.top.get() {
            let len = self.record(unit).len.get();
            debug_assert!(len > 0);
            if !visit(unit, len, self.state(unit)) {
                return;
            }
            unit += len;
        }
    }

    /// Links a used span without a block to another one: what a purge has taken out is a list in the records.
    pub(crate) fn link(&self, start: u32, next: Option<u32>) {
        self.record(start).tag.set(State::Used as u32 | next.unwrap_or(NONE >> 3) << 3);
    }

    /// The span that a span is linked to.
    pub(crate) fn linked(&self, start: u32) -> Option<u32> {
        Some(self.record(start).tag.get() >> 3).filter(|&next| next != NONE >> 3)
    }

    /// The first free span of a class on one side.
    pub(crate) fn first_of(&self, side: Side, class: usize) -> Option<u32> {
        Some(self.lists(side).heads[class]).filter(|&unit| unit != NONE)
    }

    /// The free span behind another one in its list.
    pub(crate) fn next_of(&self, span: u32) -> Option<u32> {
        Some(self.record(span).next.get()).filter(|&unit| unit != NONE)
    }
}

/// Number of units of a free span that are examined for the first dirty one: what lies before a block on huge pages is less.
const LOOK_FOR_DIRTY: u32 = 64;

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
        let class = class_of(len);
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
        let class = class_of(len);
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
        let mut class = class_of(len);
        while class < CLASSES {
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

/// Number of classes.
pub(crate) const CLASSES: usize = 248;

/// The class of spans of `len` units.
#[inline]
pub(crate) const fn class_of(len: u32) -> usize {
    if len < 32 {
        return len as usize;
    }
    let power = 31 - len.leading_zeros();
    let eighth = (len >> (power - 3)) & 7;
    (32 + (power - 5) * 8 + eighth) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_rise_with_length_and_fit_the_table() {
        let mut last = 0;
        for len in (1..100_000).chain((17..32).flat_map(|p| [(1u32 << p) - 1, 1 << p, (1 << p) + 1])) {
            assert!(class_of(len) >= last && class_of(len) < CLASSES, "{len}");
            last = class_of(len);
        }
        assert_eq!(class_of(u32::MAX), CLASSES - 1);
    }
}
