//! A region of a run: its opening, its results, its end.

use super::registry::{REGISTRY, Recycling, RegionCounts, is_open};
use firsttouch::adaptors::is_pool;
use firsttouch::allocator::Allocator;
use firsttouch::heap::purger::{self, Purgeable};
use firsttouch::sync::thread;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns the pool in a stack of adaptors; the topmost, if pools stand on each other.
pub(super) fn pool_of(allocator: &Arc<dyn Allocator>) -> Option<&Arc<dyn Allocator>> {
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
        guard_forks();
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

struct ForkGuard;

/// The registry is locked around forks; there is nothing to purge.
impl Purgeable for ForkGuard {
    fn hold(&self) {
        REGISTRY.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` took the lock.
        unsafe { REGISTRY.release() };
    }
}

/// Registers the fork guard, once.
fn guard_forks() {
    static ENTERED: AtomicBool = AtomicBool::new(false);
    purger::enter_once(&ForkGuard, &ENTERED);
}
