//! Profiles of regions of a run: the blocks allocated while a region is open, exactly, and the peak of those blocks alone.
//!
//! One lock guards everything; it may be contended, since only counts are measured here, not time. Where no region is open, a
//! block costs one load.

use firsttouch::heap::purger;
use firsttouch::layout::SMALL_LIMIT;
use firsttouch::ledger::BlockMap;
use firsttouch::sync::lock::Lock;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

static REGIONS: Lock<Regions> =
    Lock::new(Regions { last: 0, open: Vec::new(), blocks: HashMap::with_hasher(BuildHasherDefault::new()) });
/// The number of open regions.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The blocks of at least [`SMALL_LIMIT`] bytes allocated in a region. Sizes are those requested, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionCounts {
    /// Bytes allocated, growth by resizing included.
    pub allocated: u64,
    /// Number of blocks allocated.
    pub blocks: u64,
    /// Bytes of live blocks.
    pub live: usize,
    /// Number of live blocks.
    pub live_blocks: usize,
    /// Largest number of bytes that were live at once.
    pub peak: usize,
    /// Size of the largest block.
    pub largest: usize,
}

impl RegionCounts {
    /// A block has another size now: it had none before it was allocated, and has none once it is freed.
    fn change(&mut self, old: usize, new: usize) {
        self.allocated += new.saturating_sub(old) as u64;
        self.blocks += u64::from(old == 0);
        self.live = self.live + new - old;
        self.live_blocks = self.live_blocks + usize::from(old == 0) - usize::from(new == 0);
        self.peak = self.peak.max(self.live);
        self.largest = self.largest.max(new);
    }
}

/// A live block that was allocated while a region was open.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    size: usize,
    /// The region opened last before the allocation: the block belongs to all regions that were open then.
    last_region: u64,
}

struct OpenRegion {
    /// A unique number, increasing in the order of opening.
    number: u64,
    counts: RegionCounts,
}

/// The open regions and their blocks.
struct Regions {
    /// The number of the region opened last.
    last: u64,
    open: Vec<OpenRegion>,
    blocks: BlockMap<Block>,
}

impl Regions {
    fn change(&mut self, block: Block, old: usize, new: usize) {
        let open = self.open.iter_mut().filter(|region| region.number <= block.last_region);
        open.for_each(|region| region.counts.change(old, new));
    }

    fn on_alloc(&mut self, address: usize, size: usize) {
        let block = Block { size, last_region: self.last };
        self.change(block, 0, size);
        self.insert(address, block);
    }

    /// Without memory for it, the free of a block will not be counted.
    fn insert(&mut self, address: usize, block: Block) {
        if self.blocks.try_reserve(1).is_ok() {
            self.blocks.insert(address, block);
        }
    }
}

/// An open region. It ends when it is dropped.
pub struct Region(u64);

impl Region {
    /// Opens a region.
    pub fn open() -> Self {
        static ENTERED: AtomicBool = AtomicBool::new(false);
        purger::enter_once(&REGIONS, &ENTERED);
        let mut regions = REGIONS.lock();
        regions.last += 1;
        let number = regions.last;
        regions.open.push(OpenRegion { number, counts: RegionCounts::default() });
        OPEN.store(regions.open.len(), Relaxed);
        Self(number)
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> RegionCounts {
        let regions = REGIONS.lock();
        regions.open.iter().find(|region| region.number == self.0).map_or_else(Default::default, |region| region.counts)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let mut regions = REGIONS.lock();
        regions.open.retain(|region| region.number != self.0);
        OPEN.store(regions.open.len(), Relaxed);
        match regions.open.iter().map(|region| region.number).min() {
            None => regions.blocks = HashMap::default(),
            Some(oldest) => regions.blocks.retain(|_, block| block.last_region >= oldest),
        }
    }
}

/// Returns whether any region is open.
#[inline]
pub fn is_open() -> bool {
    OPEN.load(Relaxed) != 0
}

/// Tells of a block that was allocated.
pub fn on_alloc(address: usize, size: usize) {
    if size >= SMALL_LIMIT && is_open() {
        REGIONS.lock().on_alloc(address, size);
    }
}

/// Tells of a block that is about to be freed: after that, its address may be another's.
#[inline]
pub fn on_free(address: usize) {
    if is_open() {
        let mut regions = REGIONS.lock();
        if let Some(block) = regions.blocks.remove(&address) {
            regions.change(block, block.size, 0);
        }
    }
}

/// Tells of a block that is about to be resized; returns it, if it is counted.
pub fn on_resize_begin(address: usize) -> Option<Block> {
    if is_open() { REGIONS.lock().blocks.remove(&address) } else { None }
}

/// Tells that the block at `old` was resized: it is at `address` now, or as it was if that is `None`.
pub fn on_resize_end(before: Option<Block>, old: usize, address: Option<usize>, size: usize) {
    let Some(block) = before else {
        return address.into_iter().for_each(|address| on_alloc(address, size)); // it was too small, or is older
    };
    let mut regions = REGIONS.lock();
    match address {
        _ if regions.open.is_empty() => {}
        None => regions.insert(old, block),
        Some(_) if size < SMALL_LIMIT => regions.change(block, block.size, 0),
        Some(address) => {
            regions.change(block, block.size, size);
            regions.insert(address, Block { size, ..block });
        }
    }
}
