//! Idle memory of an embedded allocator is given back: what was not needed for a while is closed, all at once.
//!
//! The allocators' own clocks would also close what is about to be used again: a program's temporaries. So theirs are
//! off, and what counts is the most that was out at once in a whole window.

use super::{Embedded, Library};
use crate::allocator::Allocator;
use crate::heap::purger::{DeferredTrim, Purgeable};
use crate::os;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Ticks of the background purger in a window.
const WINDOW: u32 = 5;
/// Bytes that may be idle in a window in which memory was asked for, beside a quarter of what was needed.
const SLACK: usize = 4 << 20;
/// The most windows that pass between two purges that did not help for long.
const PATIENCE: u32 = 16;

/// The part of a bound on address space that may lie idle, as for a pool.
const IDLE_SPACE: usize = 8;
/// Frees of less than this do not look at the bound.
const LOOK_MIN: usize = 64 << 10;

#[derive(Default)]
pub(super) struct Idle {
    /// The bound on the process's address space; zero where there is none.
    bound: AtomicUsize,
    ticks: AtomicU32,
    /// Requests served when the last window ended.
    served: AtomicU64,
    /// Windows to wait before the next purge, and how many after that.
    wait: AtomicU32,
    next_wait: AtomicU32,
}

impl Idle {
    pub(super) fn look_at_bound(&self) {
        self.bound.store(os::address_space_limit().unwrap_or(0), Relaxed);
    }
}

impl<L: Library> Embedded<L> {
    /// Gives address space back at once where much of a bounded one lies idle: others, who never ask us for it, would
    /// run out. Only then a free of `size` bytes makes system calls.
    pub(super) fn vacate(&self, size: usize) {
        let bound = self.idle.bound.load(Relaxed);
        if bound > 0 && size >= LOOK_MIN && self.stats().idle > bound / IDLE_SPACE {
            self.purge();
        }
    }

    /// A window has ended.
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
            // What came back after a purge was not idle: the next one waits twice as long.
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
        if (self.idle.ticks.fetch_add(1, Relaxed) + 1).is_multiple_of(WINDOW) {
            self.look();
        }
        None // the memory is its own
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
        // SAFETY: `hold` took them all.
        unsafe {
            self.space.release();
            self.pages.release();
            self.gate.release();
            self.purging.release();
        }
    }
}
