//! The blocks that scopes had from elsewhere, since they could not serve them themselves.

use crate::allocator::{AllocError, Allocator, Block, Request};
use crate::failure;
use crate::heap::ledger::Ledger;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, OnceLock};

/// Where such blocks come from, and the list of those that live. Most scopes never need it.
pub struct Passed {
    to: Arc<dyn Allocator>,
    ledger: OnceLock<Arc<Ledger<()>>>,
    living: AtomicUsize,
}

impl Passed {
    /// Passes on to `to`.
    pub fn new(to: Arc<dyn Allocator>) -> Self {
        Self { to, ledger: OnceLock::new(), living: AtomicUsize::new(0) }
    }

    /// Who serves.
    pub fn to(&self) -> &Arc<dyn Allocator> {
        &self.to
    }

    /// Whether any block lives.
    #[inline]
    pub fn any(&self) -> bool {
        self.living.load(Acquire) > 0
    }

    /// A block from elsewhere.
    ///
    /// # Errors
    /// The other allocator's, or that there is no memory to note the block.
    pub fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        let block = self.to.allocate(request)?;
        self.note(block.address, request.size()).inspect_err(|&error| {
            failure::remember(error);
            // SAFETY: the block was just taken and nobody knows it.
            unsafe { self.to.deallocate(block.address) };
        })?;
        Ok(block)
    }

    fn note(&self, address: NonNull<u8>, size: usize) -> Result<(), AllocError> {
        // Before the block is anybody's: a free that finds none living does not look.
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

    /// Takes a block back, if it came from elsewhere; whether it did.
    ///
    /// # Safety
    /// A live block begins at `address`, whoever's; nothing uses it any more if it is on the list.
    pub unsafe fn deallocate(&self, address: NonNull<u8>) -> bool {
        if !self.any() || self.ledger.get().is_none_or(|ledger| ledger.leave(address).is_none()) {
            return false;
        }
        self.living.fetch_sub(1, Release);
        // SAFETY: the list names the block as `to`'s, and nobody uses it (caller).
        unsafe { self.to.deallocate(address) };
        true
    }
}
