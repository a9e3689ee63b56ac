//! Pages with a placement: each block is a mapping of its own, with the requested page size, NUMA policy, prefault and
//! lock.

#![allow(unsafe_code)]

use super::pages::CUT_MIN;
use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::failure;
use crate::heap::ledger::Ledger;
use crate::numa::policy::Orders;
use crate::os::{self, Errno};
use crate::pages::mapping;
use crate::pages::page::{Page, page_bytes};
use crate::pages::placement::Placement;
use crate::pages::receipt::{Outcome, Receipt};
use crate::stats::Stats;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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
        Description { arguments: Some(self.placement.arguments()), ..Description::of("pages") }
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
            match unsafe { os::unmap(address.as_ptr() as usize + keep, cut) } {
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
