//! The levels of a mark-based scratch allocator: one for each mark, with the blocks that are live above it.

use super::backing::{Closed, Slot, Survivor};
use std::collections::HashMap;

/// Bytes that ended scopes may keep from being rewound, in addition to twice what is live.
const SLACK: usize = 2 << 20;

/// The memory between a mark and the next.
struct Level {
    /// `None` if the memory was in use elsewhere when the scope began: the level then shares the one below.
    mark: Option<u64>,
    slot: Slot,
    open: bool,
    /// The number of live blocks.
    living: usize,
    /// Bytes allocated in the level, live or not.
    taken: usize,
}

/// A live block: its scope, the number of its level, its size.
struct Living {
    slot: Slot,
    level: usize,
    size: usize,
}

/// See the module.
#[derive(Default)]
pub struct Levels {
    /// Blocks outside all scopes have a level too, without a scope that would have to end, or lie on a scope's.
    stack: Vec<Level>,
    outside: usize,
    blocks: HashMap<usize, Living>,
    last: u32,
    /// Bytes of live blocks.
    pub used: usize,
    /// The peak of `used` since the last reset.
    pub peak: usize,
}

impl Levels {
    /// Begins a scope.
    pub fn open(&mut self, mark: Option<u64>) -> Slot {
        self.last = self.last.wrapping_add(1).max(1);
        let slot = Slot(self.last);
        self.stack.push(Level { mark, slot, open: true, living: 0, taken: 0 });
        slot
    }

    /// Begins a level of blocks outside all scopes.
    pub fn open_outside(&mut self, mark: u64) {
        self.stack.push(Level { mark: Some(mark), slot: Slot::OUTSIDE, open: false, living: 0, taken: 0 });
    }

    /// Whether there is no level.
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    /// Levels of ended scopes.
    fn ended_scopes(&self) -> impl Iterator<Item = &Level> {
        self.stack.iter().filter(|level| !level.open && level.slot != Slot::OUTSIDE)
    }

    /// Ends a scope.
    pub fn close(&mut self, slot: Slot) -> Closed {
        let Some(level) = self.stack.iter_mut().find(|level| level.slot == slot && level.open) else {
            return Closed::default();
        };
        level.open = false;
        let own = || self.blocks.values().filter(|block| block.slot == slot);
        Closed { survivors: own().count(), bytes: own().map(|block| block.size).sum(), damage: None }
    }

    /// Removes the top level if its scope has ended and no block on it is live. Returns its mark, to be rewound to.
    pub fn ended(&mut self) -> Option<u64> {
        loop {
            self.stack.last().filter(|level| !level.open && level.living == 0)?;
            let level = self.stack.pop()?;
            if level.mark.is_some() {
                return level.mark;
            }
            // It had no mark: its blocks lie above the mark below.
            match self.stack.last_mut() {
                Some(below) => below.taken += level.taken,
                None => self.outside += level.taken,
            }
        }
    }

    /// Reserves room to record a block; `false` if ended scopes hold too much memory.
    pub fn make_room(&mut self) -> Result<bool, ()> {
        self.blocks.try_reserve(1).map_err(|_| ())?;
        Ok(self.ended_scopes().map(|level| level.taken).sum::<usize>() <= 3 * self.used + SLACK)
    }

    /// Whether ended scopes keep memory from being rewound.
    pub fn holds_up(&self) -> bool {
        self.ended_scopes().any(|level| level.taken > 0)
    }

    /// Records a new block, on the top level; `false` if a block at that address is live already.
    pub fn on_alloc(&mut self, slot: Slot, address: usize, size: usize) -> bool {
        if self.blocks.contains_key(&address) {
            return false;
        }
        let level = self.stack.len();
        match self.stack.last_mut() {
            Some(top) => (top.living, top.taken) = (top.living + 1, top.taken + size),
            None => self.outside += size,
        }
        self.blocks.insert(address, Living { slot, level, size });
        self.used += size;
        self.peak = self.peak.max(self.used);
        true
    }

    /// Records the free of a block; returns whether it was live.
    pub fn on_free(&mut self, address: usize) -> bool {
        let Some(block) = self.blocks.remove(&address) else { return false };
        // Levels are numbered from one, and a level with a live block is not removed.
        if let Some(level) = block.level.checked_sub(1).and_then(|at| self.stack.get_mut(at)) {
            level.living -= 1;
        }
        self.used -= block.size;
        true
    }

    /// Returns the size of a live block.
    pub fn size(&self, address: usize) -> Option<usize> {
        self.blocks.get(&address).map(|block| block.size)
    }

    /// Returns the live blocks of a scope.
    pub fn survivors(&self, slot: Slot) -> Vec<Survivor> {
        let own = self.blocks.iter().filter(|(_, block)| block.slot == slot);
        let mut list = Vec::new();
        own.for_each(|(&address, block)| Survivor { address, size: block.size, site: 0 }.join(&mut list));
        list
    }

    /// Bytes allocated and not rewound.
    pub fn taken(&self) -> usize {
        self.outside + self.stack.iter().map(|level| level.taken).sum::<usize>()
    }

    /// The number of open scopes.
    pub fn depth(&self) -> usize {
        self.stack.iter().filter(|level| level.open).count()
    }

    /// Resets the peak.
    pub fn forget_peak(&mut self) {
        self.peak = self.used;
    }
}
