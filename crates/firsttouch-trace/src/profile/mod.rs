//! Profiles of regions of a run: the blocks allocated while a region is open, exactly, and the peak of those blocks alone.
//!
//! Whoever serves requests reports each allocation, resize and free here, after checking [`is_open`], which is one load.
//! One lock guards everything; it may be contended, since only counts are measured here, not time. The background purger
//! is paused while a region is open, so that what is recycled does not depend on how long the program takes.

mod region;
mod registry;

pub use region::Region;
pub use registry::{MIN_SIZE, ProfiledBlock, Recycling, RegionCounts, is_open};

use firsttouch::allocator::Allocator;
use registry::REGISTRY;
use std::sync::Arc;

/// Reports that `allocator` is about to be asked for a block of `size` bytes; `None` stands for an allocator without
/// statistics.
pub fn on_request(allocator: Option<&Arc<dyn Allocator>>, size: usize) {
    if size < MIN_SIZE || !is_open() || REGISTRY.lock().knows(allocator) {
        return;
    }
    // Outside the lock, since `stats` may take locks of the allocator. Concurrent callers read the same statistics, as
    // the allocator has not been asked yet.
    let pool = allocator.and_then(region::pool_of).map(|pool| (pool.clone(), pool.stats()));
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
