//! The holes of a space by size class: last freed first, with the best fit among the first few.

use super::Space;
use super::record::{NONE, Record};
use crate::heap::spans;

/// How many holes of a class are compared for the best fit.
const LOOK: usize = 8;

/// The lists.
pub(super) struct Holes {
    heads: [u32; spans::CLASSES],
    filled: [u64; spans::CLASSES.div_ceil(64)],
    /// Number of holes.
    pub count: u32,
}

impl Holes {
    pub(super) const fn new() -> Self {
        Self { heads: [NONE; spans::CLASSES], filled: [0; spans::CLASSES.div_ceil(64)], count: 0 }
    }

    /// The first hole of a class.
    #[cfg(test)]
    pub(super) fn head(&self, class: usize) -> u32 {
        self.heads[class]
    }

    /// The first nonempty class from `class` on.
    fn filled_from(&self, class: usize) -> Option<usize> {
        let (mut word, mut mask) = (class / 64, u64::MAX << (class % 64));
        while word < self.filled.len() {
            let rest = self.filled[word] & mask;
            if rest != 0 {
                return Some(word * 64 + rest.trailing_zeros() as usize);
            }
            (word, mask) = (word + 1, u64::MAX);
        }
        None
    }
}

impl Space {
    /// Lists the granules as a hole, first in its class. Both neighbors are blocks; the caller updates the upper one.
    pub(super) fn list(&mut self, start: u32, len: u32) {
        let class = spans::class_of(len);
        let next = self.holes.heads[class];
        if len > 1 {
            self.records.write(start + len - 1, Record { len, ..Record::default() });
        }
        self.records.write(start, Record { len, tag: 0, next, prev: NONE });
        if next != NONE {
            self.records.change(next).prev = start;
        }
        self.holes.heads[class] = start;
        self.holes.filled[class / 64] |= 1 << (class % 64);
        self.holes.count += 1;
    }

    /// Removes the hole at `start` from its list; returns its length.
    pub(super) fn unlist(&mut self, start: u32) -> u32 {
        let Record { len, next, prev, .. } = self.records.get(start);
        let class = spans::class_of(len);
        if prev == NONE {
            self.holes.heads[class] = next;
            if next == NONE {
                self.holes.filled[class / 64] &= !(1 << (class % 64));
            }
        } else {
            self.records.change(prev).next = next;
        }
        if next != NONE {
            self.records.change(next).prev = prev;
        }
        self.holes.count -= 1;
        len
    }

    /// Finds a hole with room for `need` granules at a multiple of `align` bytes: the best of the first few in the
    /// first class that has one or, with `thoroughly`, any.
    #[inline]
    pub(super) fn find(&self, need: u32, align: usize, thoroughly: bool) -> Option<u32> {
        if self.holes.count == 0 { None } else { self.find_one(need, align, thoroughly) }
    }

    fn find_one(&self, need: u32, align: usize, thoroughly: bool) -> Option<u32> {
        let look = if thoroughly { usize::MAX } else { LOOK };
        let mut class = spans::class_of(need);
        while let Some(filled) = self.holes.filled_from(class) {
            let best = self.best(self.holes.heads[filled], need, align, look);
            if best.is_some() {
                return best;
            }
            class = filled + 1; // too short, or misaligned
        }
        None
    }

    fn best(&self, head: u32, need: u32, align: usize, look: usize) -> Option<u32> {
        let (mut best, mut shortest) = (None, u32::MAX);
        let mut at = head;
        for _ in 0..look {
            if at == NONE {
                break;
            }
            let Record { len, next, .. } = self.records.get(at);
            if len >= need && len - need >= self.padding(at, align) && (best.is_none() || len < shortest) {
                (best, shortest) = (Some(at), len);
                if len == need {
                    break;
                }
            }
            at = next;
        }
        best
    }

    /// The length of the longest hole.
    pub(super) fn longest(&self) -> u32 {
        let mut longest = 0;
        // It can only be in the last nonempty class.
        let last = (0..self.holes.filled.len()).rev().find(|&word| self.holes.filled[word] != 0);
        let Some(word) = last else { return 0 };
        let class = word * 64 + 63 - self.holes.filled[word].leading_zeros() as usize;
        let mut at = self.holes.heads[class];
        while at != NONE {
            let Record { len, next, .. } = self.records.get(at);
            (longest, at) = (longest.max(len), next);
        }
        longest
    }
}
