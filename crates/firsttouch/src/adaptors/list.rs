//! What adaptors with a [`Ledger`] of their live blocks have in common.

#![allow(unsafe_code)] // Safety: each step passes on the promise of the trait's function it is a part of.

use crate::allocator::{AllocError, Allocator, Block, Request};
use crate::failure;
use crate::heap::ledger::Ledger;
use std::ptr::NonNull;

/// Allocates a block from `upstream` and enters it. If the ledger has no room, nothing is allocated.
pub(super) fn allocate<T: Copy + Send>(
    upstream: &dyn Allocator,
    ledger: &Ledger<T>,
    request: Request,
    note: T,
) -> Result<Block, AllocError> {
    let block = upstream.allocate(request)?;
    ledger.enter(block.address, request.size(), note).inspect_err(|&error| {
        failure::remember(error);
        // SAFETY: the block was just allocated and is not in use.
        unsafe { upstream.deallocate(block.address) };
    })?;
    Ok(block)
}

/// Lets `upstream` reallocate a listed block. It leaves the ledger meanwhile, because once it has moved another thread
/// may get its old address. Also returns whether the resulting block is listed: if there is no memory for that, it continues
/// uncounted, like a block that the upstream served itself.
///
/// # Safety
/// As for [`Allocator::reallocate`]; `old` is the note of the block.
pub(super) unsafe fn reallocate<T: Copy + Send>(
    upstream: &dyn Allocator,
    ledger: &Ledger<T>,
    address: NonNull<u8>,
    request: Request,
    (old, new): (T, T),
) -> (Result<Block, AllocError>, bool) {
    ledger.leave(address);
    // SAFETY: as for `Allocator::reallocate`, a live block (`limited` and `tracked`, which pass theirs on).
    match unsafe { upstream.reallocate(address, request) } {
        Ok(block) => (Ok(block), ledger.enter(block.address, request.size(), new).is_ok()),
        Err(error) => (Err(error), ledger.enter(address, request.size(), old).is_ok()),
    }
}
