//! The allocator of the process, where no context chose one: what is installed, or the C library, as NumPy itself uses.

#![allow(unsafe_code)] // Safety: passes the promises of the two on; a block's owner is told by its address (law 4).

use crate::handlers::front::installed;
use firsttouch::allocator::{AllocError, Allocator, Block, Description, Request};
use firsttouch::owners::{self, Keeper, Owner};
use firsttouch::sources::Malloc;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

struct ProcessAllocator;

/// The only instance.
pub fn process_allocator() -> Arc<dyn Allocator> {
    static ONE: OnceLock<Arc<dyn Allocator>> = OnceLock::new();
    ONE.get_or_init(|| Arc::new(ProcessAllocator)).clone()
}

fn of_owner<T>(address: NonNull<u8>, then: impl FnOnce(&dyn Allocator) -> T) -> T {
    match owners::find(address) {
        Owner::Segment(owner) => then(owner),
        Owner::Keeper(Keeper::Allocator(owner)) => then(&*owner),
        // It asks neither scopes nor what is gone.
        Owner::Keeper(Keeper::Backing(_)) | Owner::Gone | Owner::Nobody => then(&Malloc),
    }
}

// SAFETY: see the head of the file. What was ever installed is never dropped.
unsafe impl Allocator for ProcessAllocator {
    fn describe(&self) -> Description {
        installed().map_or_else(|| Description::of("numpy_default"), |allocator| allocator.describe())
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        match installed() {
            Some(allocator) => allocator.allocate(request),
            None => Malloc.allocate(request),
        }
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: `Allocator::deallocate` is called with a live block of this allocator that nobody uses any more, by
        // handlers, adaptors, buffers and fronts.
        of_owner(address, |owner| unsafe { owner.deallocate(address) })
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: `Allocator::usable_size` is called with a live block of this allocator, by handlers, adaptors,
        // buffers and fronts.
        of_owner(address, |owner| unsafe { owner.usable_size(address) })
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: `Allocator::resize_in_place` is called with a live block whose lost end nobody uses, by handlers,
        // adaptors, buffers and fronts.
        of_owner(address, |owner| unsafe { owner.resize_in_place(address, size) })
    }
}
