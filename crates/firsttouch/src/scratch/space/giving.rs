//! Freeing blocks in a space, and resizing them in place.

use super::Space;
use super::record::{GRANULE, Owner};

impl Space {
    /// Frees the block at granule `at`; returns its bytes and owner.
    #[inline]
    pub(in crate::scratch) fn give(&mut self, at: u32) -> (usize, Owner) {
        let record = self.records.get(at);
        self.records.set_begins(at, false);
        self.blocks -= 1;
        if self.history.is_some() {
            self.wipe(at..at + record.len, record.owner().site);
        }
        self.vacate(at, record.len, record.hole_below());
        (record.len as usize * GRANULE, record.owner())
    }

    /// Joins freed granules with the neighboring holes, or with the free memory above the top.
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

    /// Resizes the block at granule `at` in place, if possible.
    pub(in crate::scratch) fn resize(&mut self, at: u32, need: u32) -> bool {
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
}
