//! The levels of somebody's scratch memory: one for each mark, with what lives above it.

use super::backing::{Closed, Slot, Survivor};
use std::collections::HashMap;

/// Bytes that ended scopes may hold up beside twice what lives.
const SLACK: usize = 2 << 20;

/// What lies between a mark and the next one.
struct Level {
    /// Nothing where the memory was in use elsewhere when the scope began: it then shares the level below.
    mark: Option<u64>,
    slot: Slot,
    open: bool,
    /// Number of blocks that live here.
    living: usize,
    /// Bytes that were taken here, alive or not.
    taken: usize,
}

/// A live block: whose it is, the number of the level it lies on, its bytes.
struct Living {
    slot: Slot,
    level: usize,
    size: usize,
}

/// See the module.
#[derive(Default)]
pub struct Levels {
    /// Below the first one lies what was taken outside all scopes.
    stack: Vec<Level>,
    outside: usize,
    blocks: HashMap<usize, Living>,
    last: u32,
    /// Bytes of live blocks.
    pub used: usize,
    /// The most of them since the last reset.
    pub peak: usize,
}

impl Levels {
    /// A scope begins.
    pub fn open(&mut self, mark: Option<u64>) -> Slot {
        self.last = self.last.wrapping_add(1).max(1);
        let slot = Slot(self.last);
        self.stack.push(Level { mark, slot, open: true, living: 0, taken: 0 });
        slot
    }

    /// A scope ends.
    pub fn close(&mut self, slot: Slot) -> Closed {
        let Some(level) = self.stack.iter_mut().find(|level| level.slot == slot && level.open) else {
            return Closed::default();
        };
        level.open = false;
        let own = || self.blocks.values().filter(|block| block.slot == slot);
        Closed { survivors: own().count(), bytes: own().map(|block| block.size).sum(), damage: None }
    }

    /// Takes the top level off where its scope ended and nothing lives on it; its mark, to be rewound to.
    pub fn ended(&mut self) -> Option<u64> {
        loop {
            self.stack.last().filter(|level| !level.open && level.living == 0)?;
            let level = self.stack.pop()?;
            if level.mark.is_some() {
                return level.mark;
            }
            // It had no mark: what was taken on it lies above the mark below.
            match self.stack.last_mut() {
                Some(below) => below.taken += level.taken,
                None => self.outside += level.taken,
            }
        }
    }

    /// Makes room to note a block; `false` where ended scopes hold up too much.
    pub fn make_room(&mut self) -> Result<bool, ()> {
        self.blocks.try_reserve(1).map_err(|_| ())?;
        let ended = self.stack.iter().filter(|level| !level.open);
        Ok(ended.map(|level| level.taken).sum::<usize>() <= 3 * self.used + SLACK)
    }

    /// Whether scopes that ended hold memory up.
    pub fn holds_up(&self) -> bool {
        self.stack.iter().any(|level| !level.open && level.taken > 0)
    }

    /// A block was taken, on the top level, whoever asked; `false` if one lives at that address already.
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

    /// A block is gone; whether there was one.
    pub fn on_free(&mut self, address: usize) -> bool {
        let Some(block) = self.blocks.remove(&address) else { return false };
        // Levels are numbered from one, and one with a live block stays.
        if let Some(level) = block.level.checked_sub(1).and_then(|at| self.stack.get_mut(at)) {
            level.living -= 1;
        }
        self.used -= block.size;
        true
    }

    /// The bytes of a live block.
    pub fn size(&self, address: usize) -> Option<usize> {
        self.blocks.get(&address).map(|block| block.size)
    }

    /// The live blocks of a scope.
    pub fn survivors(&self, slot: Slot) -> Vec<Survivor> {
        let own = self.blocks.iter().filter(|(_, block)| block.slot == slot);
        let mut list = Vec::new();
        own.for_each(|(&address, block)| Survivor { address, size: block.size, site: 0 }.join(&mut list));
        list
    }

    /// Bytes that were taken and not rewound.
    pub fn taken(&self) -> usize {
        self.outside + self.stack.iter().map(|level| level.taken).sum::<usize>()
    }

    /// How many scopes are open.
    pub fn depth(&self) -> usize {
        self.stack.iter().filter(|level| level.open).count()
    }

    /// The peak begins anew.
    pub fn forget_peak(&mut self) {
        self.peak = self.used;
    }
}
