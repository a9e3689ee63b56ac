//! Anonymous memory: every block has its own pages, fresh from the system and returned at once. [`Pages`] cuts them from a heap;
//! for [`PlacedPages`], each block is a mapping with the requested page size, NUMA policy, prefault and lock.

#![allow(unsafe_code)]

use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::description::Value;
use crate::failure;
use crate::heap;
use crate::heap::Heap;
use crate::heap::purger::{self, Purgeable};
use crate::heap::segment::{Occupant, PageKind, Side, huge_page};
use crate::layout::round_up;
use crate::ledger::Ledger;
use crate::numa::policy::Orders;
use crate::os::{self, Errno};
use crate::pages::mapping;
use crate::pages::mapping::{Page, page_bytes};
use crate::pages::placement::Placement;
use crate::pages::receipt::{Outcome, Receipt};
use crate::stats::Stats;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// A shrinking block returns its end if that is at least this large and an eighth of the block. A smaller end is kept,
/// so that the block can grow again in place.
const CUT_MIN: usize = 1 << 20;

/// See the module. With `huge`, blocks of at least one huge page are aligned to it and advised huge.
pub struct Pages {
    huge: bool,
    heap: Heap,
}

impl Pages {
    /// Creates a source of pages.
    pub fn new(huge: bool) -> Arc<Self> {
        // SAFETY: it is not moved before it is dropped, which closes the heap.
        Arc::new_cyclic(|me: &Weak<Self>| unsafe { Self::owned_by(me.as_ptr(), huge) }).entered()
    }

    /// Creates the pages of another source, which owns their segments.
    ///
    /// # Safety
    /// The owner lives in an [`Arc`], is not moved, and outlives the pages.
    pub(super) unsafe fn of(owner: *const dyn Allocator, huge: bool) -> Arc<Self> {
        // SAFETY: the owner lives in an `Arc` and outlives the pages (`Aligned`).
        Arc::new(unsafe { Self::owned_by(owner, huge) }).entered()
    }

    /// # Safety
    /// The owner is not moved until the pages are dropped.
    unsafe fn owned_by(owner: *const dyn Allocator, huge: bool) -> Self {
        let heap = Heap::new(0);
        // SAFETY: the owner is not moved until the pages are dropped (`of` above and `new`).
        unsafe { heap.set_owner(owner) };
        Self { huge, heap }
    }

    fn entered(self: Arc<Self>) -> Arc<Self> {
        let address = Arc::as_ptr(&self);
        // SAFETY: the source is not moved before it is dropped, which unregisters it.
        unsafe { purger::enter(address) };
        self
    }

    /// Whether large blocks are advised huge.
    pub fn huge(&self) -> bool {
        self.huge
    }

    /// The description of such a source.
    pub(crate) fn description(huge: bool) -> Description {
        let huge = if huge { Value::from("thp") } else { Value::Flag(false) };
        Description::of("pages").named("huge", huge)
    }

    /// What `again` has after all free memory was given back.
    fn emptied<T>(&self, again: impl FnOnce() -> T) -> T {
        self.trim();
        self.heap.unmap_clean();
        again()
    }

    fn failed(&self, error: AllocError) -> AllocError {
        failure::remember(error);
        error
    }
}

// SAFETY: spans are whole pages of their own; fresh pages read zero.
unsafe impl Allocator for Pages {
    fn describe(&self) -> Description {
        Self::description(self.huge)
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().map_err(|error| self.failed(error))?;
        let (size, align) = (request.size(), request.align());
        let take = |kind: PageKind| {
            let page = kind.page();
            let whole = round_up(size, page).unwrap_or(size);
            self.heap.take_or_grow(kind, whole, align.max(page), [Side::Clean, Side::Dirty], kind.pages())
        };
        let on_base_pages = || take(PageKind::Base);
        let on_huge_pages = || take(PageKind::Huge);
        let span = if self.huge && size >= huge_page() && os::huge_page_size().is_some() {
            // Where whole huge pages are too much, the size itself may not be.
            on_huge_pages().or_else(|_| self.emptied(on_huge_pages)).or_else(|_| on_base_pages())
        } else {
            on_base_pages().or_else(|_| self.emptied(on_base_pages))
        };
        let span = span.map_err(|error| self.failed(heap::refused(size, error)))?;
        span.segment.set_occupant(span.start, Occupant::new(size, 0, 0));
        // SAFETY: spans lie in mapped memory, never at zero.
        let address = unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(span.address())) };
        if request.is_zeroed() && span.dirty > 0 {
            // SAFETY: the span was just allocated; it is dirty if the system once refused to discard its pages.
            unsafe { address.write_bytes(0, size) };
        }
        Ok(Block { address, size: span.bytes(), zeroed: request.is_zeroed() || span.dirty == 0 })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        if let Some(span) = heap::span_at(address.as_ptr() as usize) {
            self.heap.give_back(span);
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        heap::span_at(address.as_ptr() as usize).map_or(0, |span| span.bytes())
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        let Some(span) = heap::span_at(address.as_ptr() as usize) else { return false };
        if size > span.bytes() {
            return false;
        }
        let page = span.kind().page();
        let keep = size.max(1).next_multiple_of(page);
        if span.bytes().saturating_sub(keep) >= CUT_MIN.max(span.bytes() / 8) {
            self.heap.shrink(span, (keep >> span.segment.unit_shift()) as u32);
            self.heap.purge(0, usize::MAX);
        }
        span.segment.set_occupant(span.start, Occupant::new(size, 0, 0));
        true
    }

    fn trim(&self) -> usize {
        self.heap.purge(0, usize::MAX)
    }

    fn stats(&self) -> Stats {
        let held = self.heap.held();
        let (active, idle, mapped) = (held.out, held.dirty + held.leaving, held.mapped);
        let retained = mapped.saturating_sub(active + idle);
        Stats { active, in_use: active, idle, mapped, retained, ..Stats::default() }
    }

    fn in_segments(&self) -> bool {
        true
    }

    fn calls_out(&self) -> bool {
        false
    }
}

impl Purgeable for Pages {
    fn hold(&self) {
        self.heap.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` acquired them.
        unsafe { self.heap.release() }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
        // SAFETY: there are no other references to the source; a heap with live blocks stays open (law 8).
        unsafe { self.heap.close() }
    }
}

/// See the module.
pub struct PlacedPages {
    placement: Placement,
    ledger: Arc<Ledger<Receipt>>,
    bytes: AtomicUsize,
}

impl PlacedPages {
    /// Creates a source of pages with this placement.
    pub fn new(placement: Placement) -> Arc<Self> {
        Arc::new(Self { placement, ledger: Ledger::new(), bytes: AtomicUsize::new(0) })
    }

    /// The requested placement.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The live block that contains `address`, and its receipt.
    pub fn receipt(&self, address: usize) -> Option<(usize, Receipt)> {
        let mut found = None;
        self.ledger.each(|start, receipt| {
            if (start..start + receipt.bytes).contains(&address) {
                found = Some((start, receipt));
            }
        });
        found
    }

    /// Applies `orders` to the pages of a block that are not resident yet.
    pub fn rebind(&self, address: usize, orders: &Orders) -> Result<(), Errno> {
        let Some((start, mut receipt)) = self.receipt(address) else { return Err(Errno::NOTHING_THERE) };
        mapping::bind((start, receipt.bytes), orders, receipt.page)?;
        (receipt.policy, receipt.nodes) = (Outcome::Granted, Some((orders.mode, orders.nodes)));
        // SAFETY: a mapping never lies at zero.
        self.ledger.set(unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(start)) }, receipt);
        Ok(())
    }
}

// SAFETY: every block is a mapping of its own, which reads zero and stays until it is freed.
unsafe impl Allocator for PlacedPages {
    fn describe(&self) -> Description {
        self.placement.describe()
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        let placed = self.placement.map(request.size(), request.align())?;
        // SAFETY: a mapping never lies at zero.
        let address = unsafe { NonNull::new_unchecked(with_exposed_provenance_mut::<u8>(placed.address)) };
        self.ledger.enter(address, request.size(), placed.receipt).inspect_err(|&error| {
            failure::remember(error);
            // SAFETY: it was just mapped and is not in use.
            let _ = unsafe { os::unmap(placed.address, placed.size) };
        })?;
        self.bytes.fetch_add(placed.size, Relaxed);
        Ok(Block { address, size: placed.size, zeroed: true })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        let Some(receipt) = self.ledger.leave(address) else { return };
        self.bytes.fetch_sub(receipt.bytes, Relaxed);
        // SAFETY: the block was a mapping of its own and is no longer in use (`Allocator::deallocate`). If the kernel
        // cannot unmap it (too many mappings), at least its content is discarded.
        unsafe {
            if os::unmap(address.as_ptr() as usize, receipt.bytes).is_err() {
                let _ = os::discard(address.as_ptr() as usize, receipt.bytes);
            }
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        self.ledger.get(address).map_or(0, |receipt| receipt.bytes)
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        let Some(mut receipt) = self.ledger.get(address).filter(|receipt| size <= receipt.bytes) else { return false };
        let page = if receipt.page == Page::Transparent { os::huge_page_size() } else { None };
        let keep = size.max(1).next_multiple_of(page.unwrap_or(page_bytes(receipt.page)));
        let (whole, cut) = (receipt.bytes, receipt.bytes.saturating_sub(keep));
        receipt.asked = size;
        if cut >= CUT_MIN.max(whole / 8) {
            receipt.bytes = keep;
            self.ledger.set(address, receipt); // first: once it is unmapped, the end may belong to another block
            // SAFETY: the end is whole pages of the block's own mapping and is no longer in use
            // (`Allocator::resize_in_place`).
            match unsafe { os::decommit(address.as_ptr() as usize + keep, cut) } {
                Ok(()) => drop(self.bytes.fetch_sub(cut, Relaxed)),
                Err(_) => receipt.bytes = whole,
            }
        }
        self.ledger.set(address, receipt);
        true
    }

    fn stats(&self) -> Stats {
        let bytes = self.bytes.load(Relaxed);
        Stats { active: bytes, in_use: bytes, mapped: bytes, ..Stats::default() }
    }

    fn must_stay(&self) -> bool {
        self.ledger.any()
    }

    fn owns(&self, address: NonNull<u8>) -> Option<bool> {
        Some(self.ledger.get(address).is_some())
    }

    fn calls_out(&self) -> bool {
        false
    }
}
