//! Returns idle memory of an embedded allocator: what was not needed for a while is decommitted, all at once.
//!
//! The allocators' own purging clocks would also decommit memory that is about to be reused, such as a program's
//! temporaries. They are turned off, and the peak of the bytes in use over a whole window decides.

use super::super::thread_data;
use super::{Embedded, Library};
use crate::allocator::Allocator;
use crate::heap::purger::{DeferredTrim, Purgeable};
use crate::os;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Ticks of the background purger in a window.
const WINDOW: u32 = 5;
/// Bytes that may be idle after a window with requests, in addition to a quarter of what was needed.
const SLACK: usize = 4 << 20;
/// The most windows between two purges whose memory was soon needed again.
const PATIENCE: u32 = 16;

/// The fraction of a bound on address space that may be idle.
const IDLE_SPACE: usize = 8;
/// Frees smaller than this do not check the bound.
const LOOK_MIN: usize = 64 << 10;

#[derive(Default)]
pub(super) struct Idle {
    /// The bound on the process's address space; zero if there is none.
    bound: AtomicUsize,
    ticks: AtomicU32,
    /// Requests served at the end of the last window.
    served: AtomicU64,
    /// Windows to wait before the next purge, and after that one.
    wait: AtomicU32,
    next_wait: AtomicU32,
}

impl Idle {
    pub(super) fn look_at_bound(&self) {
        self.bound.store(os::address_space_limit().unwrap_or(0), Relaxed);
    }
}

impl<L: Library> Embedded<L> {
    /// Gives address space back at once if much of a bounded one is idle, because other code, which never asks us for
    /// memory, would run out. Only then does a free of `size` bytes make system calls.
    pub(super) fn vacate(&self, size: usize) {
        let bound = self.idle.bound.load(Relaxed);
        if bound > 0 && size >= LOOK_MIN && self.stats().idle > bound / IDLE_SPACE {
            self.purge();
        }
    }

    /// Ends a window: purges what was idle during it.
    fn look(&self) {
        let (active, counts) = self.gate.sum();
        let needed = self.gate.next_peak() + self.books.load(Relaxed);
        let open = self.space.held().0;
        let rested = self.idle.served.swap(counts.allocations, Relaxed) == counts.allocations;
        if rested {
            self.idle.next_wait.store(0, Relaxed);
            self.idle.wait.store(0, Relaxed);
            if open > active + self.books.load(Relaxed) {
                self.purge();
            }
        } else if open > needed + needed / 4 + SLACK {
            // If memory was needed again after a purge, it was not idle: the next purge waits twice as long.
            let wait = self.idle.wait.load(Relaxed);
            if wait > 0 {
                self.idle.wait.store(wait - 1, Relaxed);
                return;
            }
            self.purge();
            let next = (self.idle.next_wait.load(Relaxed) * 2).clamp(1, PATIENCE);
            self.idle.next_wait.store(next, Relaxed);
            self.idle.wait.store(next, Relaxed);
        }
    }
}

impl<L: Library> Purgeable for Embedded<L> {
    fn tick(&self) -> Option<Arc<dyn DeferredTrim>> {
        self.idle.look_at_bound();
        let is_over = (self.idle.ticks.fetch_add(1, Relaxed) + 1).is_multiple_of(WINDOW);
        if is_over && thread_data::is_there() {
            self.look();
        }
        None // not limited by an upstream
    }

    fn is_idle(&self) -> bool {
        let stats = self.stats();
        stats.active + stats.idle == 0
    }

    fn trim_idle(&self) {
        self.trim();
    }

    fn hold(&self) {
        self.purging.hold();
        self.gate.hold();
        self.pages.hold();
        self.space.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` acquired them all.
        unsafe {
            self.space.release();
            self.pages.release();
            self.gate.release();
            self.purging.release();
        }
    }
}
