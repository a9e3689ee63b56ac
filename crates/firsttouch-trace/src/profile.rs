//! Profiles of regions of a run: the blocks allocated while a region is open, exactly, and the peak of those blocks alone.
//!
//! Whoever serves requests reports each allocation, resize and free here, after checking [`is_open`], which is one load.
//! One lock guards everything; it may be contended, since only counts are measured here, not time. The background purger
//! is paused while a region is open, so that what is recycled does not depend on how long the program takes.

use firsttouch::adaptors::is_pool;
use firsttouch::allocator::Allocator;
use firsttouch::heap::purger;
use firsttouch::ledger::Part;
use firsttouch::stats::Stats;
use firsttouch::sync::lock::Lock;
use firsttouch::sync::thread;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
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

/// What pools did in a region. Sizes are whole pages, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recycling {
    /// Bytes of fresh memory, which the kernel has to fault in.
    pub first_touched: u64,
    /// Bytes of recycled memory.
    pub recycled: u64,
    /// Number of requests served from recycled memory alone.
    pub recycled_blocks: u64,
}

impl Recycling {
    /// Adds what a pool did between two readings of its statistics.
    fn plus(self, before: &Stats, now: &Stats) -> Self {
        let first_touched = |stats: &Stats| stats.first_touched_small_bytes + stats.first_touched_huge_bytes;
        Self {
            first_touched: self.first_touched + first_touched(now) - first_touched(before),
            recycled: self.recycled + now.recycled_bytes - before.recycled_bytes,
            recycled_blocks: self.recycled_blocks + now.recycled - before.recycled,
        }
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

/// A pool, and its statistics when it was first asked in a region.
type PoolBefore = (Arc<dyn Allocator>, Stats);

/// An open region.
struct OpenRegion {
    /// A unique number, increasing in the order of opening.
    number: u64,
    /// The only thread that is profiled; `None` for all threads.
    thread: Option<u64>,
    counts: RegionCounts,
    /// Allocators asked so far.
    allocators: Vec<Arc<dyn Allocator>>,
    /// The pools at the bottom of those.
    pools: Vec<PoolBefore>,
    /// Whether recycling is unknown: an allocator without statistics was asked, or a pool served other threads, too.
    recycling_unknown: bool,
}

impl OpenRegion {
    fn counts_thread(&self, thread: u64) -> bool {
        self.thread.is_none_or(|only| only == thread)
    }

    fn counts_block(&self, block: ProfiledBlock) -> bool {
        self.number <= block.last_region && self.counts_thread(block.thread)
    }

    fn knows(&self, allocator: Option<&Arc<dyn Allocator>>) -> bool {
        match allocator {
            Some(allocator) => self.allocators.iter().any(|other| Arc::ptr_eq(other, allocator)),
            None => self.recycling_unknown,
        }
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
        if self.regions.is_empty() {
            self.forget_blocks(); // blocks whose free was not reported
        }
        self.last += 1;
        self.regions.push(OpenRegion {
            number: self.last,
            thread,
            counts: RegionCounts::default(),
            allocators: Vec::new(),
            pools: Vec::new(),
            recycling_unknown: false,
        });
        OPEN.store(self.regions.len(), Relaxed);
        self.last
    }

    /// Closes a region and returns it.
    fn close(&mut self, number: u64) -> Option<OpenRegion> {
        let index = self.regions.iter().position(|region| region.number == number)?;
        let closed = self.regions.swap_remove(index);
        OPEN.store(self.regions.len(), Relaxed);
        self.forget_blocks();
        Some(closed)
    }

    /// Returns an open region.
    fn get(&self, number: u64) -> Option<&OpenRegion> {
        self.regions.iter().find(|region| region.number == number)
    }

    /// Returns whether all regions that profile this thread know an allocator. Regions of other threads alone that know
    /// it can no longer tell what it recycled for them.
    fn knows(&mut self, allocator: Option<&Arc<dyn Allocator>>) -> bool {
        let this = thread();
        for region in self.regions.iter_mut().filter(|region| !region.counts_thread(this)) {
            region.recycling_unknown |= region.knows(allocator);
        }
        self.regions.iter().filter(|region| region.counts_thread(this)).all(|region| region.knows(allocator))
    }

    /// Adds an allocator, and the pool at its bottom, to all regions that profile this thread.
    fn add_allocator(&mut self, allocator: Option<&Arc<dyn Allocator>>, pool: Option<PoolBefore>) {
        let this = thread();
        for region in self.regions.iter_mut().filter(|region| region.counts_thread(this)) {
            if region.knows(allocator) {
                continue;
            }
            region.allocators.extend(allocator.cloned());
            match &pool {
                None => region.recycling_unknown = true,
                Some((pool, _)) if region.pools.iter().any(|(other, _)| Arc::ptr_eq(other, pool)) => {}
                Some(pool) => region.pools.push(pool.clone()),
            }
        }
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

/// Returns the pool in a stack of adaptors; the topmost, if pools stand on each other.
fn pool_of(allocator: &Arc<dyn Allocator>) -> Option<&Arc<dyn Allocator>> {
    let mut next = Some(allocator);
    while let Some(each) = next {
        if is_pool(each.as_ref()) {
            return Some(each);
        }
        next = each.upstream();
    }
    None
}

/// An open region. It ends with [`close`](Self::close), or when it is dropped.
pub struct Region {
    number: u64,
}

impl Region {
    /// Opens a region that profiles all threads, or only the current one. If no other region is open, `prepare` is
    /// called first.
    pub fn open(only_this_thread: bool, prepare: impl FnOnce()) -> Self {
        static ENTERED: AtomicBool = AtomicBool::new(false);
        purger::enter_once(&REGISTRY, &ENTERED);
        if !is_open() {
            prepare();
        }
        let mut registry = REGISTRY.lock();
        let number = registry.open(only_this_thread.then(thread));
        purger::pause(true);
        Self { number }
    }

    /// Returns the counts so far, and what pools did, if that is known.
    pub fn snapshot(&self) -> (RegionCounts, Option<Recycling>) {
        let registry = REGISTRY.lock();
        let Some(region) = registry.get(self.number) else { return Default::default() };
        let (counts, unknown, pools) = (region.counts, region.recycling_unknown, region.pools.clone());
        drop(registry); // a fork takes the locks of pools before this one
        let recycling =
            || pools.iter().fold(Recycling::default(), |sum, (pool, before)| sum.plus(before, &pool.stats()));
        (counts, (!unknown).then(recycling))
    }

    /// Ends the region and returns its last [`snapshot`](Self::snapshot).
    pub fn close(self) -> (RegionCounts, Option<Recycling>) {
        self.snapshot()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let mut registry = REGISTRY.lock();
        let closed = registry.close(self.number);
        purger::pause(is_open());
        drop(registry);
        drop(closed); // outside the lock: it may hold the last reference to an allocator
    }
}

/// Reports that `allocator` is about to be asked for a block of `size` bytes; `None` stands for an allocator without
/// statistics.
pub fn on_request(allocator: Option<&Arc<dyn Allocator>>, size: usize) {
    if size < MIN_SIZE || !is_open() || REGISTRY.lock().knows(allocator) {
        return;
    }
    // Outside the lock, since `stats` may take locks of the allocator. Concurrent callers read the same statistics, as
    // the allocator has not been asked yet.
    let pool = allocator.and_then(pool_of).map(|pool| (pool.clone(), pool.stats()));
    REGISTRY.lock().add_allocator(allocator, pool);
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
