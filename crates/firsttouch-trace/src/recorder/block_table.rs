//! The live blocks by address: a hash table with open addressing and backward-shift deletion (Knuth, TAOCP 3, 6.4,
//! algorithm R) that does not use an allocator.

use super::mapped_vec::MappedVec;

/// A live block. Address zero marks an empty slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LiveBlock {
    pub(super) address: usize,
    pub(super) size: u64,
    pub(super) id: u32,
}

const INITIAL_SLOTS: usize = 1024;

/// A map from address to [`LiveBlock`].
pub(super) struct BlockTable {
    slots: MappedVec<LiveBlock>,
    count: usize,
}

/// Returns the preferred slot of an address (Fibonacci hashing).
fn home_slot(address: usize, slots: usize) -> usize {
    let hash = (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> 32) as usize & (slots - 1)
}

impl BlockTable {
    /// Creates an empty table; `None` if out of memory.
    pub(super) fn new() -> Option<Self> {
        Some(Self { slots: MappedVec::zeroed(INITIAL_SLOTS)?, count: 0 })
    }

    /// Inserts a block in place of any other at the same address; returns `false` if out of memory.
    pub(super) fn insert(&mut self, block: LiveBlock) -> bool {
        let slots = self.slots.items().len();
        if self.count * 2 >= slots && !self.grow(slots * 2) {
            return false;
        }
        self.insert_with_room(block);
        true
    }

    fn insert_with_room(&mut self, block: LiveBlock) {
        let slots = self.slots.items();
        let mut slot = home_slot(block.address, slots.len());
        while slots[slot].address != 0 && slots[slot].address != block.address {
            slot = (slot + 1) & (slots.len() - 1);
        }
        self.count += usize::from(slots[slot].address == 0);
        slots[slot] = block;
    }

    fn grow(&mut self, slots: usize) -> bool {
        let Some(larger) = MappedVec::zeroed(slots) else { return false };
        let mut old = std::mem::replace(&mut self.slots, larger);
        self.count = 0;
        old.items().iter().filter(|block| block.address != 0).for_each(|block| self.insert_with_room(*block));
        true
    }

    /// Removes and returns the block at `address`, if there is one.
    pub(super) fn remove(&mut self, address: usize) -> Option<LiveBlock> {
        let slots = self.slots.items();
        let mask = slots.len() - 1;
        let mut hole = home_slot(address, slots.len());
        while slots[hole].address != address {
            if slots[hole].address == 0 {
                return None;
            }
            hole = (hole + 1) & mask;
        }
        let found = slots[hole];
        let mut next = (hole + 1) & mask;
        while slots[next].address != 0 {
            let home = home_slot(slots[next].address, slots.len());
            // The entry may move back into the hole unless its home lies after it.
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                slots[hole] = slots[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        slots[hole].address = 0;
        self.count -= 1;
        Some(found)
    }

    /// Iterates over all blocks in arbitrary order.
    pub(super) fn iter(&mut self) -> impl Iterator<Item = LiveBlock> {
        self.slots.items().iter().copied().filter(|block| block.address != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockTable, LiveBlock};
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn behaves_like_a_hash_map(steps in prop::collection::vec((1usize..300, any::<bool>()), 0..2000)) {
            let mut table = BlockTable::new().unwrap();
            let mut model = HashMap::new();
            for (id, (address, insert)) in steps.into_iter().enumerate() {
                let address = address << 4;
                let block = LiveBlock { address, size: 1, id: id as u32 };
                if insert {
                    prop_assert!(table.insert(block));
                    model.insert(address, block);
                } else {
                    prop_assert_eq!(table.remove(address), model.remove(&address));
                }
            }
            let mut all: Vec<_> = table.iter().map(|block| block.id).collect();
            let mut expected: Vec<_> = model.values().map(|block| block.id).collect();
            all.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(all, expected);
        }
    }

    #[test]
    fn grows() {
        let mut table = BlockTable::new().unwrap();
        let block = |n: usize| LiveBlock { address: (n + 1) << 12, size: n as u64, id: n as u32 };
        (0..5000).for_each(|n| assert!(table.insert(block(n))));
        (0..5000).for_each(|n| assert_eq!(table.remove(block(n).address), Some(block(n))));
        assert_eq!(table.iter().count(), 0);
    }
}
