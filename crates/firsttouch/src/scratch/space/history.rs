//! Debug mode: freed memory holds a pattern, and the blocks freed are recorded, so that a write to one is detected and
//! attributed.
//!
//! Below the highest granule ever used, all granules without a live block hold the pattern.

use super::Space;
use super::record::GRANULE;
use crate::scratch::backing::Damage;
use std::ops::Range;

/// The pattern in freed memory.
pub(in crate::scratch) const FREED: u8 = 0xDB;

/// A freed block; the entry is that of its first granule.
#[derive(Clone, Copy, Default)]
struct Freed {
    site: u64,
    /// Its length in granules; zero if no freed block begins here.
    len: u32,
}

/// The blocks freed last, for every granule below the highest ever used.
pub(super) struct History(Vec<Freed>);

impl History {
    /// Reserves entries for `granules`; `None` if there is no memory for them.
    pub(super) fn new(granules: u32) -> Option<Self> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(granules as usize).ok()?;
        Some(Self(entries))
    }

    /// The block freed last on granule `at`: its first granule and its entry.
    fn covering(&self, at: u32) -> Option<(u32, Freed)> {
        let covers = |&begin: &u32| self.0[begin as usize].len > at - begin;
        (0..=at).rev().find(covers).map(|begin| (begin, self.0[begin as usize]))
    }
}

impl Space {
    fn content(&mut self, part: &Range<u32>) -> &mut [u8] {
        let len = (part.end - part.start) as usize * GRANULE;
        // SAFETY: the granules belong to the space, were written before, and hold no live block.
        unsafe { std::slice::from_raw_parts_mut(self.address(part.start).as_ptr(), len) }
    }

    /// Debug mode: records that a block requested by `site` was freed on these granules, and fills them.
    pub(super) fn wipe(&mut self, part: Range<u32>, site: u64) {
        let Some(history) = &mut self.history else { return };
        history.0[part.start as usize] = Freed { site, len: part.end - part.start };
        self.content(&part).fill(FREED);
    }

    /// Debug mode: prepares these granules for a block, and fills those below that were never used before.
    pub(super) fn unwipe(&mut self, part: Range<u32>) {
        let high = self.high;
        let Some(history) = &mut self.history else { return };
        history.0.resize(high.max(part.end) as usize, Freed::default()); // allocates nothing: capacity was reserved
        if part.start > high {
            history.0[high as usize] = Freed { site: 0, len: part.start - high };
            // SAFETY: the granules belong to the space, and no block ever lay on them.
            unsafe { self.address(high).write_bytes(FREED, (part.start - high) as usize * GRANULE) };
        }
        self.check(part.start.min(high)..part.end.min(high));
        let beyond = part.end < high && !self.records.begins(part.end);
        let Some(history) = &mut self.history else { return };
        // A freed block that extends beyond the range stays recorded there.
        if beyond
            && history.0[part.end as usize].len == 0
            && let Some((begin, freed)) = history.covering(part.end)
        {
            history.0[part.end as usize] = Freed { len: begin + freed.len - part.end, ..freed };
        }
        history.0[part.start as usize..part.end as usize].fill(Freed::default());
    }

    /// Debug mode: checks free granules for writes. The first one found is recorded, and the pattern is restored.
    fn check(&mut self, part: Range<u32>) {
        let damaged = self.content(&part).chunks(GRANULE).position(|granule| granule != [FREED; GRANULE]);
        let Some(damaged) = damaged else { return };
        let at = part.start + damaged as u32;
        let here = self.content(&(at..at + 1)).iter().position(|&byte| byte != FREED).unwrap_or(0);
        let known = self.history.as_ref().and_then(|history| history.covering(at));
        let (begin, freed) = known.unwrap_or((at, Freed { site: 0, len: 1 }));
        let damage = Damage {
            address: self.address(begin).as_ptr() as usize,
            size: freed.len as usize * GRANULE,
            offset: (at - begin) as usize * GRANULE + here,
            site: freed.site,
        };
        self.damage.get_or_insert(damage);
        self.content(&part).fill(FREED);
    }

    /// Debug mode: checks all free granules for writes. Returns what was found, now or since the last call.
    pub(in crate::scratch) fn damage(&mut self) -> Option<Damage> {
        self.history.as_ref()?;
        let mut at = 0;
        while at < self.top {
            let len = self.records.get(at).len;
            if !self.records.begins(at) {
                self.check(at..at + len);
            }
            at += len;
        }
        self.check(self.top..self.high);
        self.damage.take()
    }
}
