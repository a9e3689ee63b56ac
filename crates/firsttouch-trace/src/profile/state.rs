//! Open regions, and the living blocks that on_alloc while any was open.

use super::MIN_SIZE;
use super::region::Counts;
use firsttouch::allocator::Allocator;
use firsttouch::heap::ledger::Part;
use firsttouch::stats::Stats;
use firsttouch::sync::thread;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

/// A block that was counted.
#[derive(Clone, Copy, Debug)]
pub struct Living {
    size: usize,
    /// The opening that was last when it on_alloc: it belongs to the regions that were open then.
    born: u64,
    /// The thread that asked.
    by: u64,
}

impl Living {
    /// Its bytes.
    pub fn size(self) -> usize {
        self.size
    }
}

/// An open region.
pub(super) struct Open {
    /// The number of its opening: no two regions have the same.
    pub number: u64,
    /// The only thread that counts, if not all do.
    pub thread: Option<u64>,
    pub counts: Counts,
    /// Allocators that were asked.
    pub seen: Vec<Arc<dyn Allocator>>,
    /// The pools at their bottom, and what they had done before.
    pub pools: Vec<(Arc<dyn Allocator>, Stats)>,
    /// Whether somebody was asked who keeps no count of what is recycled, or a pool also by threads that don't count.
    pub others: bool,
}

impl Open {
    fn has(&self, living: Living) -> bool {
        self.number <= living.born && self.thread.is_none_or(|only| only == living.by)
    }

    fn knows(&self, allocator: Option<&Arc<dyn Allocator>>) -> bool {
        match allocator {
            Some(allocator) => self.seen.iter().any(|other| Arc::ptr_eq(other, allocator)),
            None => self.others,
        }
    }
}

/// See the module.
pub(super) struct State {
    /// The number of the last opening.
    pub last: u64,
    pub regions: Vec<Open>,
    blocks: Part<Living>,
}

impl State {
    pub(super) const fn new() -> Self {
        Self { last: 0, regions: Vec::new(), blocks: HashMap::with_hasher(BuildHasherDefault::new()) }
    }

    fn of_thread(&mut self, by: u64) -> impl Iterator<Item = &mut Open> {
        self.regions.iter_mut().filter(move |region| region.thread.is_none_or(|only| only == by))
    }

    /// Whether all regions that this concerns have met an allocator. Regions of other threads alone, which met it, too,
    /// can't tell from now on what it recycled for them.
    pub(super) fn knows(&mut self, allocator: Option<&Arc<dyn Allocator>>) -> bool {
        let by = thread();
        for region in self.regions.iter_mut().filter(|region| region.thread.is_some_and(|only| only != by)) {
            region.others |= region.knows(allocator);
        }
        self.of_thread(by).all(|region| region.knows(allocator))
    }

    /// Notes an allocator, with the pool at its bottom and what that had done before.
    pub(super) fn meets(&mut self, allocator: Option<&Arc<dyn Allocator>>, pool: Option<(Arc<dyn Allocator>, Stats)>) {
        for region in self.of_thread(thread()) {
            if region.knows(allocator) {
                continue;
            }
            region.seen.extend(allocator.cloned());
            match &pool {
                None => region.others = true,
                Some((pool, _)) if region.pools.iter().any(|(other, _)| Arc::ptr_eq(other, pool)) => {}
                Some(pool) => region.pools.push(pool.clone()),
            }
        }
    }

    pub(super) fn on_alloc(&mut self, address: usize, size: usize) {
        let living = Living { size, born: self.last, by: thread() };
        self.regions.iter_mut().filter(|region| region.has(living)).for_each(|region| region.counts.on_alloc(size));
        self.put(address, living);
    }

    pub(super) fn on_free(&mut self, address: usize) {
        let Some(living) = self.blocks.remove(&address) else { return };
        self.regions.iter_mut().filter(|region| region.has(living)).for_each(|region| region.counts.went(living.size));
    }

    pub(super) fn take(&mut self, address: usize) -> Option<Living> {
        self.blocks.remove(&address)
    }

    pub(super) fn resized(&mut self, before: Option<Living>, address: usize, size: usize) {
        let Some(living) = before else {
            if size >= MIN_SIZE {
                self.on_alloc(address, size); // it was small, or on_alloc before the regions
            }
            return;
        };
        let concerned = self.regions.iter_mut().filter(|region| region.has(living));
        if size < MIN_SIZE {
            return concerned.for_each(|region| region.counts.went(living.size));
        }
        concerned.for_each(|region| region.counts.changed(living.size, size));
        self.put(address, Living { size, ..living });
    }

    /// Where there is no memory for the list, the block will not be seen to go.
    fn put(&mut self, address: usize, living: Living) {
        if self.blocks.try_reserve(1).is_ok() {
            self.blocks.insert(address, living);
        }
    }

    /// Forgets blocks that belong to no open region.
    pub(super) fn forget(&mut self) {
        match self.regions.iter().map(|region| region.number).min() {
            None => self.blocks = HashMap::default(),
            Some(oldest) => self.blocks.retain(|_, living| living.born >= oldest),
        }
    }
}
