//! A pool in a program that was not written for pools.
//!
//! If a program touches one page in every 2 MiB of a 1 GiB block, huge pages would make all of it resident. So fresh
//! memory is on base pages, until a block is found with nearly every page touched: when it is freed, or when the next one
//! is requested. Huge pages then serve blocks that are not much larger, up to twice the bytes that were in use with it.

use super::clock::Clock;
use super::density::is_dense;
use super::{Options, Pool, huge_min};
use crate::allocator::{Allocator, Block, Request};
use crate::heap::heap;
use crate::heap::region::Span;
use crate::heap::shape::Kind;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Blocks of up to so many times the size of one that was found densely used are likely to be so, too. A program that fills
/// a thousand blocks of 1 MiB may well have a sparse one of 1 GiB.
const LARGER: usize = 8;

#[derive(Default)]
pub(super) struct Guest {
    /// The most bytes that are likely to have been in use, and used densely, at the same time: a large block on base pages
    /// that was found so, and what was on huge pages then.
    dense: AtomicUsize,
    /// The size of the largest block that was found so.
    largest: AtomicUsize,
    /// The address of the large block on base pages that was allocated last, until it is found densely used.
    last: AtomicUsize,
}

impl Guest {
    /// Looks whether a block is used densely, and records it if it is.
    pub(super) fn look_at(&self, pool: &Pool, span: Span, asked: usize) -> bool {
        let found = span.kind() == Kind::Small && asked >= huge_min(false) && is_dense(span.address(), asked);
        if found {
            self.found_dense(pool, asked);
        }
        found
    }

    fn found_dense(&self, pool: &Pool, asked: usize) {
        self.dense.fetch_max(pool.heaps.huge_out() + asked, Relaxed);
        self.largest.fetch_max(asked, Relaxed);
    }

    /// Records that a span was taken for a block of `asked` bytes.
    pub(super) fn taken(&self, span: Span, asked: usize) {
        if span.kind() == Kind::Small && asked >= huge_min(false) {
            self.last.store(span.block(), Relaxed);
        }
    }

    /// Whether a block of `size` bytes is large enough for huge pages, and likely to be used densely.
    pub(super) fn wants_huge(&self, pool: &Pool, size: usize, zeroed: bool) -> bool {
        if size < huge_min(zeroed) {
            return false;
        }
        let wants = || {
            let dense = self.dense.load(Relaxed);
            let largest = self.largest.load(Relaxed);
            dense >= size && largest * LARGER >= size && pool.heaps.huge_out() + size <= 2 * dense + dense / 8 // spans are larger than their blocks
        };
        wants() || (self.look_at_last(pool) && wants())
    }

    /// Looks at the block that was allocated last, if it is live; whether it is used densely by now.
    fn look_at_last(&self, pool: &Pool) -> bool {
        let address = self.last.load(Relaxed);
        let Some((_, span)) = heap::span_at(address).filter(|_| heap::lives(address)) else { return false };
        let found = self.look_at(pool, span, span.segment.occupant(span.start).asked());
        if found {
            let _ = self.last.compare_exchange(address, 0, Relaxed, Relaxed); // unless there is a later one
        }
        found
    }
}

impl Pool {
    /// Creates a pool for a program that was not written for pools.
    pub fn guest(options: Options) -> Arc<Self> {
        Self::make(options, Clock::new(options.decay), Some(Guest::default()))
    }

    /// Idle bytes.
    pub fn idle(&self) -> usize {
        self.heaps.held().dirty + self.cached()
    }

    /// Bytes that were taken fresh from the system.
    pub fn taken_fresh(&self) -> usize {
        (self.meter.first_touched_small.load(Relaxed) + self.meter.first_touched_huge.load(Relaxed)) as usize
    }

    /// Of these, bytes beyond the most that was ever held: they had been given back too early.
    pub fn taken_again(&self) -> usize {
        self.taken_fresh().saturating_sub(self.meter.peak_held.load(Relaxed).max(0) as usize)
    }

    /// Gives back what is idle in parts of huge pages, which [`Allocator::trim`] leaves whole; bytes given back.
    pub fn trim_parts(&self) -> usize {
        self.purged(self.heaps.purge_parts(0))
    }

    /// Does the background purger's work, if a tick is due.
    pub fn tick(&self) {
        self.tick_if_due();
    }

    /// A block of `size` bytes is asked for that will be used densely, as arrays are.
    pub fn expect_dense(&self, size: usize) {
        if let Some(guest) = self.guest.as_ref().filter(|_| size >= huge_min(false)) {
            guest.found_dense(self, size);
        }
    }

    /// Whether a live block begins at `address`, which may be any address.
    pub fn is_block(&self, address: NonNull<u8>) -> bool {
        heap::lives(address.as_ptr() as usize)
    }

    /// Resizes the block at `address` to at least `size` bytes, moving it if it cannot grow in place; `None`, and the
    /// block is unchanged, if there is no memory.
    ///
    /// A block that moves gets room to grow; otherwise two blocks that grow in turn would move at every step.
    ///
    /// # Safety
    /// As for [`Allocator::reallocate`].
    pub unsafe fn grow(&self, address: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: as for `Allocator::reallocate`, a live block of this pool (`large.rs` of the preloaded library); the
        // copy fits into both blocks, which do not overlap.
        unsafe {
            if self.resize_in_place(address, size) {
                return Some(address);
            }
            let old = self.usable_size(address);
            let block = self
                .allocate(Request::bytes(size.saturating_add(size / 8)))
                .or_else(|_| self.allocate(Request::bytes(size)));
            let Ok(Block { address: to, .. }) = block else {
                // What was idle has been given back meanwhile, so there may be room to grow now.
                return self.resize_in_place(address, size).then_some(address);
            };
            to.copy_from_nonoverlapping(address, old.min(size));
            self.deallocate(address);
            Some(to)
        }
    }
}
