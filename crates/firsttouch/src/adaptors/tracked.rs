//! Counts live and past allocations: cheap enough to leave on.

#![allow(unsafe_code)] // Safety: requests are passed on unchanged, and so are the promises.

use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::factory::Arguments;
use crate::ledger::Ledger;
use crate::spec::{Made, ON_A_POOL, Spec};
use crate::stats::Stats;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The declaration.
pub const SPECS: &[Spec] = &[Spec {
    name: "tracked",
    summary: "an allocator that counts its blocks and bytes, with their peak and total, for :func:`stats`.",
    options: &[ON_A_POOL],
    positional: 1,
    notes: "",
    example: "\
>>> tracker = ft.tracked(ft.malloc())
>>> a = tracker.zeros(1000)
>>> ft.stats(tracker).in_use
8000",
}];

pub fn make(arguments: &Arguments) -> Made {
    Ok(Tracked::new(arguments.upstream()?))
}

/// See the module.
pub struct Tracked {
    upstream: Arc<dyn Allocator>,
    /// Bytes asked for, by address.
    ledger: Arc<Ledger<usize>>,
    blocks: AtomicUsize,
    bytes: AtomicUsize,
    peak: AtomicUsize,
    allocations: AtomicU64,
    allocated: AtomicU64,
}

impl Tracked {
    /// Tracks the requests to `upstream`.
    pub fn new(upstream: Arc<dyn Allocator>) -> Arc<Self> {
        Arc::new(Self {
            upstream,
            ledger: Ledger::new(),
            blocks: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            allocations: AtomicU64::new(0),
            allocated: AtomicU64::new(0),
        })
    }

    fn grew(&self, more: usize) {
        self.allocated.fetch_add(more as u64, Relaxed);
        let now = self.bytes.fetch_add(more, Release) + more;
        // Usually this is no peak, and a load is cheaper than a write.
        if now > self.peak.load(Relaxed) {
            self.peak.fetch_max(now, Relaxed);
        }
    }

    fn changed(&self, old: usize, new: usize) {
        if new > old {
            self.grew(new - old);
        } else {
            self.bytes.fetch_sub(old - new, Relaxed);
        }
    }

    fn on_free(&self, asked: usize) {
        self.blocks.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(asked, Relaxed);
    }
}

// SAFETY: the upstream keeps the promises of `Allocator`.
unsafe impl Allocator for Tracked {
    fn describe(&self) -> Description {
        Description::of("tracked").with(self.upstream.describe())
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        let block = self.ledger.allocate(&*self.upstream, request, request.size())?;
        self.allocations.fetch_add(1, Relaxed);
        self.blocks.fetch_add(1, Release);
        self.grew(request.size());
        Ok(block)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        if let Some(asked) = self.ledger.leave(address) {
            self.on_free(asked);
        }
        // SAFETY: the caller's promise.
        unsafe { self.upstream.deallocate(address) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.upstream.usable_size(address) }
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise.
        let done = unsafe { self.upstream.resize_in_place(address, size) };
        if done && let Some(asked) = self.ledger.get(address) {
            self.ledger.set(address, size);
            self.changed(asked, size);
        }
        done
    }

    unsafe fn reallocate(&self, address: NonNull<u8>, request: Request) -> Result<Block, AllocError> {
        // SAFETY: the caller's promise.
        unsafe {
            let Some(asked) = self.ledger.get(address) else { return self.upstream.reallocate(address, request) };
            let (result, listed) = self.ledger.reallocate(&*self.upstream, address, request, (asked, request.size()));
            match &result {
                _ if !listed => self.on_free(asked),
                Ok(_) => self.changed(asked, request.size()),
                Err(_) => {}
            }
            result
        }
    }

    /// The upstream's, with the counts of the requests that came by here. Each of these is exact, but others may change while
    /// one is read. They agree all the same: what lives was allocated, and is at most the peak, because the totals are
    /// raised first and read last. Blocks that the upstream does not count are taken for active and mapped as they are.
    fn stats(&self) -> Stats {
        let upstream = self.upstream.stats();
        let (blocks, in_use) = (self.blocks.load(Acquire), self.bytes.load(Acquire));
        let peak_in_use = self.peak.load(Relaxed).max(in_use);
        let (allocations, allocated_bytes) = (self.allocations.load(Relaxed), self.allocated.load(Relaxed));
        let uncounted = in_use.saturating_sub(upstream.active);
        Stats {
            in_use,
            active: upstream.active + uncounted,
            mapped: upstream.mapped + uncounted,
            peak_in_use,
            blocks,
            allocations,
            recycled: upstream.recycled.min(allocations),
            allocated_bytes,
            ..upstream
        }
    }

    fn upstream(&self) -> Option<&Arc<dyn Allocator>> {
        Some(&self.upstream)
    }

    fn owns(&self, address: NonNull<u8>) -> Option<bool> {
        Some(self.ledger.get(address).is_some())
    }
}
