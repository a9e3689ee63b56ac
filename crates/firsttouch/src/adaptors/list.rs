//! What the adaptors that keep a [`Ledger`] of their live blocks have in common.

#![allow(unsafe_code)] // Safety: each step passes on the promise of the trait's function it is a part of.

use crate::allocator::{AllocError, Allocator, Block, Request};
use crate::failure;
use crate::heap::ledger::Ledger;
use std::ptr::NonNull;

/// A block from `upstream` that stands on the list. Where the list has no room for it nothing was taken.
pub(super) fn allocate<T: Copy + Send>(
    upstream: &dyn Allocator,
    ledger: &Ledger<T>,
    request: Request,
    note: T,
) -> Result<Block, AllocError> {
    let block = upstream.allocate(request)?;
    ledger.enter(block.address, request.size(), note).inspect_err(|&error| {
        failure::remember(error);
        // SAFETY: the block was just taken and nobody knows it.
        unsafe { upstream.deallocate(block.address) };
    })?;
    Ok(block)
}

/// Lets `upstream` change the size of a listed block. It leaves the list meanwhile: once it has moved, another thread
/// may be given its old address. Whether the block that lives on then stands on the list, too: where there is no memory
/// for that, it goes on uncounted, as one that the upstream served itself.
///
/// # Safety
/// As for [`Allocator::reallocate`]; `old` was noted of the block.
pub(super) unsafe fn reallocate<T: Copy + Send>(
    upstream: &dyn Allocator,
    ledger: &Ledger<T>,
    address: NonNull<u8>,
    request: Request,
    (old, new): (T, T),
) -> (Result<Block, AllocError>, bool) {
    ledger.leave(address);
    // SAFETY: the caller's promise.
    match unsafe { upstream.reallocate(address, request) } {
        Ok(block) => (Ok(block), ledger.enter(block.address, request.size(), new).is_ok()),
        Err(error) => (Err(error), ledger.enter(address, request.size(), old).is_ok()),
    }
}

/// Moves a block of `allocator` to a new one; content comes along up to the smaller size.
///
/// # Safety
/// As for [`Allocator::reallocate`].
pub(super) unsafe fn move_away(
    allocator: &dyn Allocator,
    address: NonNull<u8>,
    request: Request,
) -> Result<Block, AllocError> {
    // SAFETY: the old block lives and overlaps no other; it is given back only after the copy (law 8).
    unsafe {
        let old = allocator.usable_size(address);
        let block = allocator.allocate(request.with_zeroed(false))?;
        block.address.copy_from_nonoverlapping(address, old.min(request.size()));
        allocator.deallocate(address);
        Ok(Block { zeroed: false, ..block })
    }
}
