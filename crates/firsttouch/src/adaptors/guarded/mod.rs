//! Blocks next to inaccessible guard pages: a read or write past the end stops at once, with SIGSEGV.
//!
//! A block ends as close to its guard as its alignment and the upstream's allow, or begins right behind it. The rest of
//! its first and last page holds canaries, which are checked when the block is freed and by [`Guarded::check`]. Freed
//! blocks may be kept inaccessible for a while. A guard never splits a huge page.

#![allow(unsafe_code)] // Safety: a block and its guard lie on pages of their own, which belong to no other block.

mod canary;
mod kept;
mod near;
mod room;
mod take;

use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::description::Value;
use crate::failure;
use crate::heap::ledger::Ledger;
use crate::heap::purger::{self, Purgeable};
use crate::os;
use crate::stats::Stats;
use crate::sync::lock::Lock;
use kept::Kept;
pub use near::Near;
use room::Room;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use take::pointer;

/// The side of a block on which its guard lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// Behind the block: overruns fault.
    #[default]
    After,
    /// Before the block: underruns fault.
    Before,
}

/// The options of a [`Guarded`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuardedOptions {
    /// Where the guard lies.
    pub side: Side,
    /// Bytes of freed blocks that are kept inaccessible; the oldest is released first. [`Allocator::trim`] releases
    /// all.
    pub keep: usize,
}

/// A byte next to a block that was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun {
    /// The block.
    pub address: usize,
    /// The requested size in bytes.
    pub asked: usize,
    /// The address of the byte, before or behind the block.
    pub at: usize,
}

/// See the module.
pub struct Guarded {
    upstream: Arc<dyn Allocator>,
    options: GuardedOptions,
    ledger: Arc<Ledger<Room>>,
    kept: Lock<Kept>,
    blocks: AtomicUsize,
    in_use: AtomicUsize,
    allocations: AtomicU64,
    allocated: AtomicU64,
}

impl Guarded {
    /// Guards blocks of `upstream`.
    pub fn new(upstream: Arc<dyn Allocator>, options: GuardedOptions) -> Arc<Self> {
        let guarded = Arc::new(Self {
            upstream,
            options,
            ledger: Ledger::new(),
            kept: Lock::new(Kept::new()),
            blocks: AtomicUsize::new(0),
            in_use: AtomicUsize::new(0),
            allocations: AtomicU64::new(0),
            allocated: AtomicU64::new(0),
        });
        let address = Arc::as_ptr(&guarded);
        // SAFETY: it is not moved before it is dropped, which unregisters it.
        unsafe { purger::enter(address) };
        guarded
    }

    /// The overruns found since the last call, of freed blocks and of live ones.
    pub fn check(&self) -> Vec<Overrun> {
        let mut found = self.kept.lock().take_found();
        self.ledger.each(|address, room| {
            // SAFETY: a block leaves the ledger before its room is freed, and the ledger's lock is held.
            unsafe {
                if let Some(at) = canary::damage(&room) {
                    found.push(Overrun { address, asked: room.asked, at });
                    canary::put(&room); // it is reported once
                }
            }
        });
        found
    }

    /// How often damage was found when blocks were freed.
    pub fn damaged(&self) -> u64 {
        self.kept.lock().damaged
    }
}

// SAFETY: a block's pages are a block of the upstream, so they are exclusively its own until it is freed.
unsafe impl Allocator for Guarded {
    fn describe(&self) -> Description {
        let side = if self.options.side == Side::After { "after" } else { "before" };
        Description::of("guarded")
            .with(self.upstream.describe())
            .named("side", side)
            .named("keep", Value::size(self.options.keep))
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        let refused = |error| {
            failure::pass_on(error);
            error
        };
        request.check().map_err(refused)?;
        // The upstream would align the pages, but not the block in them. Both alignments were checked.
        let request = request.aligned(request.align().max(self.upstream.alignment())).unwrap_or(request);
        self.kept.lock().admit(request.size()).map_err(refused)?;
        let before = failure::now();
        let again = |error| {
            if self.let_go(0) == 0 {
                return Err(error);
            }
            failure::retract(before);
            self.take(request)
        };
        let (room, zero) = self.take(request).or_else(again).map_err(|error| {
            self.kept.lock().gone();
            refused(error)
        })?;
        let address = pointer(room.address);
        self.ledger.enter(address, request.size(), room).map_err(|error| {
            // SAFETY: the block was just allocated and is not in use.
            unsafe { self.give_back(room) };
            refused(error)
        })?;
        if request.is_zeroed() && !zero {
            // SAFETY: as above.
            unsafe { address.write_bytes(0, request.size()) };
        }
        self.blocks.fetch_add(1, Relaxed);
        self.in_use.fetch_add(request.size(), Relaxed);
        self.allocations.fetch_add(1, Relaxed);
        self.allocated.fetch_add(request.size() as u64, Relaxed);
        Ok(Block { address, size: request.size(), zeroed: request.is_zeroed() || zero })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: `Allocator::deallocate` is called with a live block of this allocator that nobody uses any more, by
        // handlers, adaptors, buffers and fronts; a block that is not listed was the upstream's own.
        unsafe {
            let Some(room) = self.ledger.leave(address) else { return self.upstream.deallocate(address) };
            self.inspect(&room);
            self.blocks.fetch_sub(1, Relaxed);
            self.in_use.fetch_sub(room.asked, Relaxed);
            let pages = room.pages();
            if self.options.keep >= pages.len() && os::protect(pages.start, pages.len(), false).is_ok() {
                self.kept.lock().push(room);
            } else {
                self.give_back(room);
            }
        }
        self.let_go(self.options.keep);
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: `Allocator::usable_size` is called with a live block of this allocator, by handlers, adaptors,
        // buffers and fronts.
        self.ledger.get(address).map_or_else(|| unsafe { self.upstream.usable_size(address) }, |room| room.asked)
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: `Allocator::resize_in_place` is called with a live block whose lost end nobody uses, by handlers,
        // adaptors, buffers and fronts; the canaries that are added or overwritten at the block's end lie on its own
        // pages.
        unsafe {
            let Some(room) = self.ledger.get(address) else { return self.upstream.resize_in_place(address, size) };
            let Some(resized) = room.resized(size) else { return false };
            self.inspect(&room);
            canary::put(&resized); // first: afterwards the gaps of both rooms hold canaries
            self.ledger.set(address, resized);
            self.in_use.fetch_add(size.wrapping_sub(room.asked), Relaxed);
            true
        }
    }

    fn trim(&self) -> usize {
        let gone = self.let_go(0);
        gone.max(self.upstream.trim())
    }

    fn stats(&self) -> Stats {
        let stats = self.upstream.stats();
        if stats == Stats::default() {
            return stats; // the upstream keeps none
        }
        let kept = self.kept.lock().bytes.min(stats.active);
        let allocations = self.allocations.load(Relaxed);
        Stats {
            in_use: self.in_use.load(Relaxed),
            active: stats.active - kept,
            idle: stats.idle + kept,
            blocks: self.blocks.load(Relaxed),
            allocations,
            // The upstream also counts other users' requests, and blocks that could not be guarded.
            recycled: stats.recycled.min(allocations),
            allocated_bytes: self.allocated.load(Relaxed),
            ..stats
        }
    }

    fn small_limit(&self) -> usize {
        0 // it serves small arrays, too
    }

    fn upstream(&self) -> Option<&Arc<dyn Allocator>> {
        Some(&self.upstream)
    }

    fn must_stay(&self) -> bool {
        self.ledger.any()
    }

    fn owns(&self, address: NonNull<u8>) -> Option<bool> {
        Some(self.ledger.get(address).is_some())
    }

    fn calls_out(&self) -> bool {
        self.upstream.calls_out()
    }
}

impl Purgeable for Guarded {
    fn trim_idle(&self) {} // kept blocks are never written, so a fork copies none of them

    fn hold(&self) {
        self.kept.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` acquired it.
        unsafe { self.kept.release() }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
        self.let_go(0);
        if !self.kept.lock().is_empty() {
            // The system refused to make memory accessible again, which the upstream must not give out (law 8).
            std::mem::forget(self.upstream.clone());
        }
    }
}
