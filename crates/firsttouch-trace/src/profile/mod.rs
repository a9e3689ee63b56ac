//! Regions of a program's run, and what was asked for while they were open: blocks of their own, exactly, each with the
//! peak that its blocks alone make.
//!
//! Whoever hands blocks out tells of each as it comes, changes and on_free, and asks [`is_open`] first, which is one load
//! where nobody measures. One lock for all of it: contention spoils nothing that is measured here. While a region is
//! open the caretaker rests, so that what is recycled does not depend on how long the program took.

#![allow(unsafe_code)] // Safety: the one ward is a static, so it lives for ever.

mod region;
mod state;

pub use region::{Counts, Recycling, Region};
pub use state::Living;

use firsttouch::allocator::Allocator;
use firsttouch::heap::caretaker::{self, Ward};
use firsttouch::sync::lock::Lock;
use state::State;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Once};

/// Blocks below this many bytes are not counted: they stay with the program's own small allocator, on whose way nobody
/// counts anything.
pub const MIN_SIZE: usize = firsttouch::adaptors::SMALL_LIMIT;

/// Regions that are open.
static OPEN: AtomicUsize = AtomicUsize::new(0);
static STATE: Lock<State> = Lock::new(State::new());

/// Whether anybody measures.
#[inline]
pub fn is_open() -> bool {
    OPEN.load(Relaxed) != 0
}

/// `allocator` is about to be asked for a block of `size` bytes; nothing where nobody keeps count of what it recycles.
pub fn on_request(allocator: Option<&Arc<dyn Allocator>>, size: usize) {
    if size < MIN_SIZE || !is_open() || STATE.lock().knows(allocator) {
        return;
    }
    // Outside the lock: an allocator may take its own. Who looks twice finds the same, as it was not asked yet.
    let pool = allocator.and_then(region::pool_of).map(|pool| (pool.clone(), pool.stats()));
    STATE.lock().meets(allocator, pool);
}

/// A block of `size` bytes was handed out.
pub fn on_alloc(address: usize, size: usize) {
    if size >= MIN_SIZE && is_open() {
        STATE.lock().on_alloc(address, size);
    }
}

/// A block is given back: to be told before somebody else may get its address.
#[inline]
pub fn on_free(address: usize) {
    if is_open() {
        STATE.lock().on_free(address);
    }
}

/// A block is about to change its size, and perhaps its address; what is known of it, for [`resized`].
pub fn resizing(address: usize) -> Option<Living> {
    if is_open() { STATE.lock().take(address) } else { None }
}

/// It lives on at `address` with `size` bytes, or failed to change and lives on as it was.
pub fn resized(before: Option<Living>, address: usize, size: usize) {
    if is_open() {
        STATE.lock().resized(before, address, size);
    }
}

struct Forks;

/// The state is at rest around forks; there is nothing else to look after.
impl Ward for Forks {
    fn hold(&self) {
        STATE.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` took it.
        unsafe { STATE.release() };
    }
}

/// What has to stand before the first region opens.
fn set_up() {
    static ONCE: Once = Once::new();
    static FORKS: Forks = Forks;
    // SAFETY: a static lives for ever.
    ONCE.call_once(|| unsafe { caretaker::enter(&raw const FORKS) });
}
