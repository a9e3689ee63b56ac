//! A budget in bytes: a request that would exceed it is refused, with the bytes in use and the budget.

#![allow(unsafe_code)] // Safety: requests are passed on unchanged, and so are the promises.

use super::list;
use crate::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use crate::failure;
use crate::heap::ledger::Ledger;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// See the module. Requested bytes count, from before the allocation until after the free. What an upstream keeps idle
/// does not count.
pub struct Limited {
    upstream: Arc<dyn Allocator>,
    budget: usize,
    used: AtomicUsize,
    ledger: Arc<Ledger<usize>>,
}

impl Limited {
    /// Allows at most `budget` live bytes of `upstream` at once. A budget of 0 serves nothing.
    pub fn new(upstream: Arc<dyn Allocator>, budget: usize) -> Arc<Self> {
        Arc::new(Self { upstream, budget, used: AtomicUsize::new(0), ledger: Ledger::new() })
    }

    /// The budget in bytes.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// The bytes of the budget that are in use.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Charges `more` bytes to the budget, or fails. `asked` is the size of the whole request.
    fn charge(&self, more: usize, asked: usize) -> Result<(), AllocError> {
        let fits = |used: usize| used.checked_add(more).filter(|&sum| sum <= self.budget);
        self.used.fetch_update(Relaxed, Relaxed, fits).map(drop).map_err(|used| {
            let error = AllocError::new(asked, Limit::Budget { allowed: self.budget, used });
            failure::remember(error);
            error
        })
    }

    fn refund(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
    }
}

/// A block without the bytes that the upstream adds: they were not charged, and an adaptor that keeps blocks would use
/// them.
fn exact(block: Block, request: Request) -> Block {
    Block { size: request.size(), ..block }
}

// SAFETY: the upstream keeps the promises.
unsafe impl Allocator for Limited {
    fn describe(&self) -> Description {
        Description::of("limited").with(self.upstream.describe()).with(self.budget)
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        self.charge(request.size(), request.size())?;
        let block = list::allocate(&*self.upstream, &self.ledger, request, request.size());
        block.map(|block| exact(block, request)).inspect_err(|_| self.refund(request.size()))
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        let asked = self.ledger.leave(address);
        // SAFETY: the caller's promise.
        unsafe { self.upstream.deallocate(address) };
        self.refund(asked.unwrap_or(0));
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: the caller's promise.
        self.ledger.get(address).unwrap_or_else(|| unsafe { self.upstream.usable_size(address) })
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let Some(asked) = self.ledger.get(address) else { return self.upstream.resize_in_place(address, size) };
            let more = size.saturating_sub(asked);
            if self.charge(more, size).is_err() {
                return false;
            }
            let done = self.upstream.resize_in_place(address, size);
            if done {
                self.ledger.set(address, size);
            }
            self.refund(if done { asked.saturating_sub(size) } else { more });
            done
        }
    }

    unsafe fn reallocate(&self, address: NonNull<u8>, request: Request) -> Result<Block, AllocError> {
        // SAFETY: the caller's promise.
        unsafe {
            let Some(asked) = self.ledger.get(address) else { return self.upstream.reallocate(address, request) };
            request.check().inspect_err(|&error| failure::remember(error))?;
            let more = request.size().saturating_sub(asked);
            self.charge(more, request.size())?;
            let notes = (asked, request.size());
            let (result, listed) = list::reallocate(&*self.upstream, &self.ledger, address, request, notes);
            let counted = match (&result, listed) {
                (_, false) => 0,
                (Ok(_), true) => request.size(),
                (Err(_), true) => asked,
            };
            self.refund(asked + more - counted);
            result.map(|block| if listed { exact(block, request) } else { block })
        }
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
