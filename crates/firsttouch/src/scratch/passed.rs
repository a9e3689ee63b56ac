//! Requests that a scope cannot serve and passes on to another allocator.

use crate::allocator::{AllocError, Allocator, Block, Request};
use crate::failure;
use crate::heap::ledger::Ledger;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, OnceLock};

/// The other allocator, and a ledger of the live blocks passed on. Most scopes never need it.
pub struct Passed {
    to: Arc<dyn Allocator>,
    ledger: OnceLock<Arc<Ledger<()>>>,
    living: AtomicUsize,
}

impl Passed {
    /// Passes requests on to `to`.
    pub fn new(to: Arc<dyn Allocator>) -> Self {
        Self { to, ledger: OnceLock::new(), living: AtomicUsize::new(0) }
    }

    /// The other allocator.
    pub fn to(&self) -> &Arc<dyn Allocator> {
        &self.to
    }

    /// Whether any such block is live.
    #[inline]
    pub fn any(&self) -> bool {
        self.living.load(Acquire) > 0
    }

    /// Allocates a block from the other allocator.
    ///
    /// # Errors
    /// Its error, or that there is no memory to record the block.
    pub fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        let block = self.to.allocate(request)?;
        self.note(block.address, request.size()).inspect_err(|&error| {
            failure::remember(error);
            // SAFETY: the block was just allocated and is not in use.
            unsafe { self.to.deallocate(block.address) };
        })?;
        Ok(block)
    }

    fn note(&self, address: NonNull<u8>, size: usize) -> Result<(), AllocError> {
        // Counted before the block is handed out: a free skips the ledger if the count is zero.
        self.living.fetch_add(1, Release);
        let noted = self.ledger.get_or_init(Ledger::new).enter(address, size, ());
        noted.inspect_err(|_| {
            self.living.fetch_sub(1, Release);
        })
    }

    /// Whether such a block begins at `address`.
    pub fn owns(&self, address: NonNull<u8>) -> bool {
        self.any() && self.ledger.get().is_some_and(|ledger| ledger.get(address).is_some())
    }

    /// Frees the block at `address` if it was passed on; returns whether it was.
    ///
    /// # Safety
    /// `address` is a live block of any allocator; if it is in the ledger, it is no longer in use.
    pub unsafe fn deallocate(&self, address: NonNull<u8>) -> bool {
        if !self.any() || self.ledger.get().is_none_or(|ledger| ledger.leave(address).is_none()) {
            return false;
        }
        self.living.fetch_sub(1, Release);
        // SAFETY: the ledger lists the block as one of `to`, and it is not in use (caller).
        unsafe { self.to.deallocate(address) };
        true
    }
}
