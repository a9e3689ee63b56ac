//! Allocating blocks in a space: in a hole, or at the top.

use super::record::{GRANULE, Owner, Record};
use super::{Space, Taken};

impl Space {
    /// Allocates a block in a hole or at the top. With `thoroughly`, every hole is tried.
    #[inline]
    pub(in crate::scratch) fn take(
        &mut self,
        need: u32,
        align: usize,
        owner: Owner,
        thoroughly: bool,
    ) -> Option<Taken> {
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
}
