//! Patterns in memory that shows what was never written, or was freed: whoever reads such bytes sees them.

#![allow(unsafe_code)] // Safety: only bytes that nobody uses are written: of blocks just taken, or on their way back.

use super::list;
use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::failure;
use crate::heap::ledger::Ledger;
use std::ptr::NonNull;
use std::sync::Arc;

/// See the module. Zeroed requests stay zero; all that may be used beyond what was asked is filled, too, so that it has
/// the pattern when the block grows.
pub struct Filled {
    upstream: Arc<dyn Allocator>,
    on_allocate: Option<u8>,
    on_free: Option<u8>,
    /// Bytes that may be used of each block: what the upstream said as it gave it. The C library may later speak of much
    /// more, all that an alignment took.
    ledger: Arc<Ledger<usize>>,
}

impl Filled {
    /// Fills blocks of `upstream` with `on_allocate` before they are used and with `on_free` before they go back.
    pub fn new(upstream: Arc<dyn Allocator>, on_allocate: Option<u8>, on_free: Option<u8>) -> Arc<Self> {
        Arc::new(Self { upstream, on_allocate, on_free, ledger: Ledger::new() })
    }
}

/// Fills a block's bytes from one to another.
///
/// # Safety
/// The block lives, has these bytes, and nobody uses them.
unsafe fn fill(address: NonNull<u8>, from: usize, to: usize, pattern: Option<u8>) {
    if let Some(byte) = pattern.filter(|_| from < to) {
        // SAFETY: the caller's promise.
        unsafe { address.add(from).write_bytes(byte, to - from) }
    }
}

// SAFETY: the upstream keeps the promises; zeroed requests are not written, and others no longer called zero.
unsafe impl Allocator for Filled {
    fn describe(&self) -> Description {
        Description::of("filled")
            .with(self.upstream.describe())
            .named("on_allocate", self.on_allocate.map(usize::from))
            .named("on_free", self.on_free.map(usize::from))
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        let block = list::allocate(&*self.upstream, &self.ledger, request, request.size())?;
        self.ledger.set(block.address, block.size);
        let from = if request.is_zeroed() { request.size() } else { 0 };
        // SAFETY: the block was just taken, and nobody uses it yet.
        unsafe { fill(block.address, from, block.size, self.on_allocate) };
        Ok(Block { zeroed: block.zeroed && (request.is_zeroed() || self.on_allocate.is_none()), ..block })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: the caller's promise: nobody uses the block any more.
        unsafe {
            if let Some(usable) = self.ledger.leave(address) {
                fill(address, 0, usable, self.on_free);
            }
            self.upstream.deallocate(address);
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: the caller's promise.
        self.ledger.get(address).unwrap_or_else(|| unsafe { self.upstream.usable_size(address) })
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise; beyond the smaller of both sizes nobody uses anything.
        unsafe {
            let Some(usable) = self.ledger.get(address) else { return self.upstream.resize_in_place(address, size) };
            if self.on_free.is_some() && size < usable {
                return false; // the end would go back unfilled; moved, it does not
            }
            let done = self.upstream.resize_in_place(address, size);
            if done {
                self.ledger.set(address, size);
                fill(address, usable, size, self.on_allocate);
            }
            done
        }
    }

    unsafe fn reallocate(&self, address: NonNull<u8>, request: Request) -> Result<Block, AllocError> {
        // SAFETY: the caller's promise; beyond the smaller of both sizes nobody uses anything.
        unsafe {
            let Some(usable) = self.ledger.get(address) else { return self.upstream.reallocate(address, request) };
            if self.on_free.is_none() {
                let notes = (usable, request.size());
                let block = list::reallocate(&*self.upstream, &self.ledger, address, request, notes).0?;
                fill(block.address, usable, request.size(), self.on_allocate);
                return Ok(Block { size: request.size(), ..block });
            }
            if request.suits(address) && self.resize_in_place(address, request.size()) {
                return Ok(Block { address, size: request.size(), zeroed: false });
            }
            list::move_away(self, address, request)
        }
    }

    fn small_limit(&self) -> usize {
        0 // small arrays are what this is for, too
    }

    fn upstream(&self) -> Option<&Arc<dyn Allocator>> {
        Some(&self.upstream)
    }

    fn owns(&self, address: NonNull<u8>) -> Option<bool> {
        Some(self.ledger.get(address).is_some())
    }

    fn calls_out(&self) -> bool {
        self.upstream.calls_out()
    }
}
