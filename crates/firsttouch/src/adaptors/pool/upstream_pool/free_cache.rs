//! The free cache of a pool over an upstream: idle blocks, kept whole, listed by local node and size, and by age,
//! newest first.
//!
//! Every block is assigned a slot when it is allocated from the upstream, so putting it into the cache allocates
//! nothing.

use crate::layout::DEFAULT_ALIGN;
use std::ops::{Index, IndexMut};

const NONE: u32 = u32::MAX;
/// Lists per power of two of the size.
const STEPS: u32 = 8;
const LISTS: usize = ((usize::BITS - DEFAULT_ALIGN.ilog2()) * STEPS) as usize + 1;
/// Blocks tried in each list. Not all of them fit, because their sizes and alignments differ.
const LOOK: usize = 16;

/// The two lists that a slot is in.
#[derive(Clone, Copy)]
enum Chain {
    OfSize,
    OfAge,
}

#[derive(Clone, Copy)]
struct Link {
    newer: u32,
    older: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    idle: Idle,
    order: u64,
    links: [Link; 2],
}

impl Index<Chain> for Slot {
    type Output = Link;
    fn index(&self, chain: Chain) -> &Link {
        &self.links[chain as usize]
    }
}

impl IndexMut<Chain> for Slot {
    fn index_mut(&mut self, chain: Chain) -> &mut Link {
        &mut self.links[chain as usize]
    }
}

/// A block in the free cache.
#[derive(Clone, Copy)]
pub(super) struct Idle {
    pub address: usize,
    /// The usable size.
    pub size: usize,
    /// When it was freed.
    pub epoch: u32,
    /// The slot assigned to it.
    pub slot: u32,
    /// The local node that it serves, on machines with several nodes, and when all of it was last seen there.
    pub local_node: u8,
    pub seen: u32,
}

pub(super) struct FreeCache {
    slots: Vec<Slot>,
    /// The chain of vacant slots.
    vacant: u32,
    of_size: Vec<[u32; LISTS]>,
    newest: u32,
    oldest: u32,
    order: u64,
    /// The usable bytes of all blocks in the cache.
    pub bytes: usize,
}

fn list_of(size: usize) -> usize {
    let size = size.max(DEFAULT_ALIGN);
    let doubling = size.ilog2();
    let step = (size >> (doubling - STEPS.ilog2())) as u32 % STEPS;
    ((doubling - DEFAULT_ALIGN.ilog2()) * STEPS + step) as usize
}

impl FreeCache {
    pub(super) fn new(local_nodes: usize) -> Self {
        let of_size = vec![[NONE; LISTS]; local_nodes];
        Self { slots: Vec::new(), vacant: NONE, of_size, newest: NONE, oldest: NONE, order: 0, bytes: 0 }
    }

    /// The head of the list that a block is in.
    fn list(&mut self, idle: Idle) -> &mut u32 {
        &mut self.of_size[usize::from(idle.local_node)][list_of(idle.size)]
    }

    fn slot(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }

    /// Assigns a slot to another block; `None` if there is no memory for it.
    pub(super) fn admit(&mut self) -> Option<u32> {
        if self.vacant != NONE {
            let slot = self.vacant;
            self.vacant = self.slot(slot)[Chain::OfAge].older;
            return Some(slot);
        }
        let slot = u32::try_from(self.slots.len()).ok().filter(|&slot| slot != NONE)?;
        self.slots.try_reserve(1).ok()?;
        let links = [Link { newer: NONE, older: NONE }; 2];
        self.slots.push(Slot {
            idle: Idle { address: 0, size: 0, epoch: 0, slot, local_node: 0, seen: 0 },
            order: 0,
            links,
        });
        Some(slot)
    }

    /// Vacates the slot of a block that was returned to the upstream.
    pub(super) fn dismiss(&mut self, slot: u32) {
        let vacant = self.vacant;
        self.slot(slot)[Chain::OfAge].older = vacant;
        self.vacant = slot;
    }

    pub(super) fn put(&mut self, idle: Idle) {
        self.order += 1;
        let (slot, order) = (idle.slot, self.order);
        let older = [*self.list(idle), self.newest];
        *self.slot(slot) = Slot { idle, order, links: older.map(|older| Link { newer: NONE, older }) };
        if older[0] != NONE {
            self.slot(older[0])[Chain::OfSize].newer = slot;
        }
        match older[1] {
            NONE => self.oldest = slot,
            older => self.slot(older)[Chain::OfAge].newer = slot,
        }
        *self.list(idle) = slot;
        self.newest = slot;
        self.bytes += idle.size;
    }

    /// When the block that has been here longest was freed.
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then(|| self.slots[self.oldest as usize].idle.epoch)
    }

    /// Takes the block of `local_node` freed last among those that hold `size` bytes at `align` and waste at most an
    /// eighth.
    pub(super) fn take(&mut self, local_node: u8, size: usize, align: usize) -> Option<Idle> {
        let most = size + size / 8;
        let fits = |slot: &&Slot| (size..=most).contains(&slot.idle.size) && slot.idle.address.is_multiple_of(align);
        let lists = &self.of_size[usize::from(local_node)][list_of(size)..=list_of(most)];
        let found =
            lists.iter().filter_map(|&head| self.along(head).take(LOOK).find(fits)).max_by_key(|slot| slot.order);
        let idle = found?.idle;
        self.remove(idle);
        Some(idle)
    }

    /// Takes the block that has been here longest if `old` returns `true` for its epoch.
    pub(super) fn take_oldest(&mut self, old: impl Fn(u32) -> bool) -> Option<Idle> {
        let idle = self.slots.get(self.oldest as usize).map(|slot| slot.idle).filter(|idle| old(idle.epoch))?;
        self.remove(idle);
        Some(idle)
    }

    fn along(&self, head: u32) -> impl Iterator<Item = &Slot> {
        let at = |slot: u32| self.slots.get(slot as usize);
        std::iter::successors(at(head), move |slot| at(slot[Chain::OfSize].older))
    }

    fn remove(&mut self, idle: Idle) {
        let [size, age] = self.slot(idle.slot).links;
        match size.newer {
            NONE => *self.list(idle) = size.older,
            newer => self.slot(newer)[Chain::OfSize].older = size.older,
        }
        if size.older != NONE {
            self.slot(size.older)[Chain::OfSize].newer = size.newer;
        }
        match age.newer {
            NONE => self.newest = age.older,
            newer => self.slot(newer)[Chain::OfAge].older = age.older,
        }
        match age.older {
            NONE => self.oldest = age.newer,
            older => self.slot(older)[Chain::OfAge].newer = age.newer,
        }
        self.bytes -= idle.size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn lists_rise_with_the_size() {
        let sizes =
            (1usize..5000).chain((13..63).flat_map(|shift| (0..9).map(move |n| (1 << shift) + n * (1 << (shift - 4)))));
        let lists: Vec<_> = sizes.chain([usize::MAX]).map(list_of).collect();
        assert!(lists.is_sorted() && lists[lists.len() - 1] < LISTS);
    }

    /// Compared with a list that is searched exhaustively.
    #[test]
    #[cfg_attr(miri, ignore = "20,000 steps, without unsafe code")]
    fn it_agrees_with_a_plain_list() {
        let mut free_cache = FreeCache::new(3);
        let (mut plain, mut slots, mut dice) = (Vec::<Idle>::new(), HashMap::new(), 1u64);
        for step in 0..20_000usize {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (roll, size) = ((dice >> 60) as usize, 900 + (dice >> 33) as usize % (900 << (step % 8)));
            let local_node = (dice >> 20) as u8 % 3;
            let taken = match roll {
                0..=6 => {
                    let slot = free_cache.admit().unwrap();
                    let idle = Idle { address: (step + 1) * 64, size, epoch: step as u32, slot, local_node, seen: 0 };
                    assert!(slots.insert(slot, idle.address).is_none(), "two blocks have the same slot");
                    free_cache.put(idle);
                    plain.push(idle);
                    None
                }
                7..=12 => {
                    let align = 64 << (roll % 3);
                    let fits = |idle: &Idle| {
                        let wasted = idle.size.checked_sub(size);
                        idle.local_node == local_node
                            && wasted.is_some_and(|n| n <= size / 8)
                            && idle.address.is_multiple_of(align)
                    };
                    let expected = plain.iter().rposition(fits).map(|at| plain.remove(at));
                    let taken = free_cache.take(local_node, size, align);
                    assert_eq!(taken.map(|idle| idle.address), expected.map(|idle| idle.address));
                    taken
                }
                _ => {
                    let old = |epoch: u32| (epoch as usize) < step / 2 * 2;
                    let expected = (plain.first().is_some_and(|idle| old(idle.epoch))).then(|| plain.remove(0));
                    let taken = free_cache.take_oldest(old);
                    assert_eq!(taken.map(|idle| idle.address), expected.map(|idle| idle.address));
                    taken
                }
            };
            if let Some(idle) = taken {
                assert_eq!(slots.remove(&idle.slot), Some(idle.address));
                free_cache.dismiss(idle.slot);
            }
            assert_eq!(free_cache.bytes, plain.iter().map(|idle| idle.size).sum::<usize>());
        }
        assert!(plain.len() > 5);
    }
}
