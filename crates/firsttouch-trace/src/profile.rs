//! Profiles of regions of a run: the blocks allocated while a region is open, exactly, and the peak of those blocks alone.
//!
//! Whoever serves requests reports each allocation, resize and free here, after checking [`is_open`], which is one load.
//! One lock guards everything; it may be contended, since only counts are measured here, not time.

use firsttouch::heap::purger;
use firsttouch::ledger::Part;
use firsttouch::sync::lock::Lock;
use firsttouch::sync::thread;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Smaller blocks are not counted: they are served by the program's own allocator for small blocks, which reports nothing.
pub const MIN_SIZE: usize = firsttouch::adaptors::SMALL_LIMIT;

/// The registry of the process.
static REGISTRY: Lock<Registry> = Lock::new(Registry::new());
/// The number of open regions.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Returns whether any region is open.
#[inline]
pub fn is_open() -> bool {
    OPEN.load(Relaxed) != 0
}

/// The blocks of at least [`MIN_SIZE`] bytes allocated in a region. Sizes are those requested, in bytes.
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
    fn on_alloc(&mut self, size: usize) {
        self.blocks += 1;
        self.live_blocks += 1;
        self.on_resize(0, size);
    }

    fn on_free(&mut self, size: usize) {
        self.live -= size;
        self.live_blocks -= 1;
    }

    fn on_resize(&mut self, old: usize, new: usize) {
        self.allocated += new.saturating_sub(old) as u64;
        self.live = self.live - old + new;
        self.peak = self.peak.max(self.live);
        self.largest = self.largest.max(new);
    }
}

/// A live block that was allocated while a region was open.
#[derive(Clone, Copy, Debug)]
pub struct ProfiledBlock {
    size: usize,
    /// The region opened last before the allocation: the block belongs to all regions that were open then.
    last_region: u64,
    /// The allocating thread.
    thread: u64,
}

impl ProfiledBlock {
    /// Returns the size in bytes.
    pub fn size(self) -> usize {
        self.size
    }
}

/// An open region.
struct OpenRegion {
    /// A unique number, increasing in the order of opening.
    number: u64,
    /// The only thread that is profiled; `None` for all threads.
    thread: Option<u64>,
    counts: RegionCounts,
}

impl OpenRegion {
    fn counts_thread(&self, thread: u64) -> bool {
        self.thread.is_none_or(|only| only == thread)
    }

    fn counts_block(&self, block: ProfiledBlock) -> bool {
        self.number <= block.last_region && self.counts_thread(block.thread)
    }
}

/// The open regions and their blocks.
struct Registry {
    /// The number of the region opened last.
    last: u64,
    regions: Vec<OpenRegion>,
    blocks: Part<ProfiledBlock>,
}

impl Registry {
    const fn new() -> Self {
        Self { last: 0, regions: Vec::new(), blocks: HashMap::with_hasher(BuildHasherDefault::new()) }
    }

    /// Opens a region and returns its number.
    fn open(&mut self, thread: Option<u64>) -> u64 {
        self.last += 1;
        self.regions.push(OpenRegion { number: self.last, thread, counts: RegionCounts::default() });
        OPEN.store(self.regions.len(), Relaxed);
        self.last
    }

    /// Closes a region.
    fn close(&mut self, number: u64) {
        self.regions.retain(|region| region.number != number);
        OPEN.store(self.regions.len(), Relaxed);
        self.forget_blocks();
    }

    fn counting(&mut self, block: ProfiledBlock) -> impl Iterator<Item = &mut RegionCounts> {
        let regions = self.regions.iter_mut().filter(move |region| region.counts_block(block));
        regions.map(|region| &mut region.counts)
    }

    fn on_alloc(&mut self, address: usize, size: usize) {
        let block = ProfiledBlock { size, last_region: self.last, thread: thread() };
        self.counting(block).for_each(|counts| counts.on_alloc(size));
        self.insert(address, block);
    }

    fn on_free(&mut self, address: usize) {
        let Some(block) = self.remove(address) else { return };
        self.counting(block).for_each(|counts| counts.on_free(block.size));
    }

    fn on_resize(&mut self, before: Option<ProfiledBlock>, address: usize, size: usize) {
        let Some(block) = before else {
            if size >= MIN_SIZE {
                self.on_alloc(address, size); // it was too small, or is older than the regions
            }
            return;
        };
        if size < MIN_SIZE {
            return self.counting(block).for_each(|counts| counts.on_free(block.size));
        }
        self.counting(block).for_each(|counts| counts.on_resize(block.size, size));
        self.insert(address, ProfiledBlock { size, ..block });
    }

    /// Inserts a block. If out of memory, its free will not be counted.
    fn insert(&mut self, address: usize, block: ProfiledBlock) {
        if self.blocks.try_reserve(1).is_ok() {
            self.blocks.insert(address, block);
        }
    }

    /// Removes and returns a block, without counting a free.
    fn remove(&mut self, address: usize) -> Option<ProfiledBlock> {
        self.blocks.remove(&address)
    }

    /// Forgets the blocks that belong to no open region.
    fn forget_blocks(&mut self) {
        match self.regions.iter().map(|region| region.number).min() {
            None => self.blocks = HashMap::default(),
            Some(oldest) => self.blocks.retain(|_, block| block.last_region >= oldest),
        }
    }
}

/// An open region. It ends when it is dropped.
pub struct Region {
    number: u64,
}

impl Region {
    /// Opens a region that profiles all threads, or only the current one.
    pub fn open(only_this_thread: bool) -> Self {
        static ENTERED: AtomicBool = AtomicBool::new(false);
        purger::enter_once(&REGISTRY, &ENTERED);
        Self { number: REGISTRY.lock().open(only_this_thread.then(thread)) }
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> RegionCounts {
        let registry = REGISTRY.lock();
        registry
            .regions
            .iter()
            .find(|region| region.number == self.number)
            .map_or_else(Default::default, |region| region.counts)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        REGISTRY.lock().close(self.number);
    }
}

/// Reports that a block was allocated.
pub fn on_alloc(address: usize, size: usize) {
    if size >= MIN_SIZE && is_open() {
        REGISTRY.lock().on_alloc(address, size);
    }
}

/// Reports that a block is about to be freed. This must precede the free, after which the address may be reused.
#[inline]
pub fn on_free(address: usize) {
    if is_open() {
        REGISTRY.lock().on_free(address);
    }
}

/// Reports that a block is about to be resized; returns what [`on_resize_end`] needs to know.
pub fn on_resize_begin(address: usize) -> Option<ProfiledBlock> {
    if is_open() { REGISTRY.lock().remove(address) } else { None }
}

/// Reports that a resize has ended. If it failed, `address` and `size` are the old ones.
pub fn on_resize_end(before: Option<ProfiledBlock>, address: usize, size: usize) {
    if is_open() {
        REGISTRY.lock().on_resize(before, address, size);
    }
}
