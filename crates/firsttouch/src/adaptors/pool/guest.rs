//! A pool in a program that was not written for pools.
//!
//! If a program touches one page in every 2 MiB of a 1 GiB block, huge pages would make all of it resident. So fresh
//! memory is on base pages, and only when a large block is freed is it known how densely it was used. From then on, as
//! many bytes are served from huge pages as were freed with nearly every page touched.

use super::{Options, Pool, huge_min};
use crate::allocator::{Allocator, Request};
use crate::heap::heap;
use crate::heap::region::Span;
use crate::heap::shape::Kind;
use crate::layout::round_down;
use crate::os;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of places in a block that are sampled, and of pages at each.
const PLACES: usize = 8;
const PAGES: usize = 32;

#[derive(Default)]
pub(super) struct Guest {
    /// Bytes of large blocks on base pages that had been used densely when they were freed.
    dense: AtomicUsize,
}

impl Guest {
    /// Records whether a block that is being freed was used densely.
    pub(super) fn look_at(&self, kind: Kind, span: Span, asked: usize) {
        if kind == Kind::Small && asked >= huge_min(false) && is_dense(span.address(), asked) {
            self.dense.fetch_add(asked, Relaxed);
        }
    }

    /// Whether a block of `size` bytes is likely to be used densely.
    pub(super) fn wants_huge(&self, pool: &Pool, size: usize) -> bool {
        let dense = self.dense.load(Relaxed);
        dense >= size && pool.heaps.huge_out() + size <= dense + dense / 8 // spans are larger than their blocks
    }
}

/// Whether nearly all sampled pages of a block are resident.
fn is_dense(address: usize, size: usize) -> bool {
    let page = os::page_size();
    let step = (size - PAGES * page) / (PLACES - 1);
    let there = |place: usize| {
        let at = round_down(address + place * step, page);
        os::resident_pages(at, PAGES * page).unwrap_or(0)
    };
    (0..PLACES).map(there).sum::<usize>() >= PLACES * PAGES * 7 / 8
}

impl Pool {
    /// Creates a pool for a program that was not written for pools.
    pub fn guest(options: Options) -> Arc<Self> {
        Self::make(options, Some(Guest::default()))
    }

    /// Idle bytes.
    pub fn idle(&self) -> usize {
        self.heaps.held().dirty + self.cached()
    }

    /// Does the background purger's work, if a tick is due.
    pub fn tick(&self) {
        self.tick_if_due();
    }

    /// A block of `size` bytes is asked for that will be used densely, as arrays are.
    pub fn expect_dense(&self, size: usize) {
        if let Some(guest) = self.guest.as_ref().filter(|_| size >= huge_min(false)) {
            guest.dense.fetch_max(self.heaps.huge_out() + size, Relaxed);
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
            let to = block.ok()?.address;
            to.copy_from_nonoverlapping(address, old.min(size));
            self.deallocate(address);
            Some(to)
        }
    }
}
