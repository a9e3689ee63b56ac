//! A pool in a program that was not written for pools.
//!
//! If a program touches one page in every 2 MiB of a 1 GiB block, huge pages would make all of it resident. So fresh
//! memory is on base pages, and only when a large block is freed is it known how densely it was used. From then on, as
//! many bytes are served from huge pages as were in use at once, and freed with nearly every page touched.

use super::{Options, Pool, huge_min};
use crate::allocator::{Allocator, Request};
use crate::heap::region::Span;
use crate::heap::shape::Kind;
use crate::heap::{heap, segment};
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
    /// Bytes of large blocks that are likely to have been in use, and used densely, at the same time.
    dense: AtomicUsize,
    /// Bytes on huge pages when a large block was last taken or grown on base pages.
    huge_then: AtomicUsize,
    /// Bytes that have been freed since, and had been used densely on base pages. Of what was freed before, as much
    /// counts as that block has: it replaces what a program frees again and again.
    freed: AtomicUsize,
}

impl Guest {
    /// Records whether a block that is being freed was used densely.
    pub(super) fn look_at(&self, kind: Kind, span: Span, asked: usize) {
        if kind == Kind::Small && asked >= huge_min(false) && is_dense(span.address(), asked) {
            let freed = self.freed.fetch_add(asked, Relaxed) + asked;
            self.dense.fetch_max(self.huge_then.load(Relaxed) + freed, Relaxed);
        }
    }

    /// Whether a large block of `size` bytes, which `may` be on huge pages, is likely to be used densely.
    pub(super) fn wants_huge(&self, pool: &Pool, size: usize, may: bool) -> bool {
        let (dense, huge_out) = (self.dense.load(Relaxed), pool.heaps.huge_out());
        let huge = may && dense >= size && huge_out + size <= dense + dense / 8; // spans are larger than their blocks
        if !huge {
            self.on_base_pages(huge_out, size);
        }
        huge
    }

    /// A large block gets `size` bytes on base pages.
    fn on_base_pages(&self, huge_out: usize, size: usize) {
        self.huge_then.store(huge_out, Relaxed);
        self.freed.fetch_min(size, Relaxed);
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
            let old = self.usable_size(address);
            if self.resize_in_place(address, size) {
                let large = size > old && size >= huge_min(false) && !segment::is_huge(address.as_ptr() as usize);
                if let Some(guest) = self.guest.as_ref().filter(|_| large) {
                    guest.on_base_pages(self.heaps.huge_out(), size);
                }
                return Some(address);
            }
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
