//! A budget in bytes: a request that would exceed it is refused, with the bytes in use, the budget, and the lines whose
//! arrays fill it.

#![allow(unsafe_code)] // Safety: requests are passed on unchanged, and so are the promises.

mod budget;
mod largest;

pub use budget::{AUTO, Budget};
pub use largest::CallSites;

use super::list;
use crate::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use crate::description::Value;
use crate::failure;
use crate::heap::ledger::Ledger;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// See the module. Requested bytes count, from before the allocation until after the free. What an upstream keeps idle
/// does not count.
pub struct Limited {
    upstream: Arc<dyn Allocator>,
    budget: Budget,
    used: AtomicUsize,
    ledger: Arc<Ledger<Noted>>,
    call_sites: Option<CallSites>,
}

#[derive(Clone, Copy)]
struct Noted {
    asked: usize,
    /// The line that made the block, from [`largest::FROM`] bytes on.
    site: u64,
}

impl Limited {
    /// Allows at most `budget` live bytes of `upstream` at once. A budget of 0 serves nothing.
    pub fn new(upstream: Arc<dyn Allocator>, budget: impl Into<Budget>) -> Arc<Self> {
        Self::with_call_sites(upstream, budget, None)
    }

    /// The same, with the lines that make large blocks, for the messages of refused requests.
    pub fn with_call_sites(
        upstream: Arc<dyn Allocator>,
        budget: impl Into<Budget>,
        call_sites: Option<CallSites>,
    ) -> Arc<Self> {
        let budget = budget.into();
        Arc::new(Self { upstream, budget, used: AtomicUsize::new(0), ledger: Ledger::new(), call_sites })
    }

    /// The budget in bytes.
    pub fn budget(&self) -> usize {
        self.budget.bytes()
    }

    /// The bytes of the budget that are in use.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Charges `more` bytes to the budget, or fails. `asked` is the size of the whole request.
    fn charge(&self, more: usize, asked: usize) -> Result<(), AllocError> {
        let allowed = self.budget();
        let fits = |used: usize| used.checked_add(more).filter(|&sum| sum <= allowed);
        let charged = self.used.fetch_update(Relaxed, Relaxed, fits);
        charged.map(drop).map_err(|used| AllocError::new(asked, Limit::Budget { allowed, used }))
    }

    /// Records why a request is refused. Called without locks, as finding a place may run the front's code.
    #[cold]
    fn explain(&self, error: AllocError) {
        let listed = largest::listed(&self.ledger, self.call_sites);
        failure::explain(error, format!("{error}{}{listed}", self.budget));
    }

    fn note(&self, asked: usize) -> Noted {
        let sites = self.call_sites.filter(|_| asked >= largest::FROM);
        Noted { asked, site: sites.map_or(0, |sites| (sites.site)()) }
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

// SAFETY: the upstream keeps the promises of `Allocator`.
unsafe impl Allocator for Limited {
    fn describe(&self) -> Description {
        let limited = Description::of("limited").with(self.upstream.describe());
        match self.budget.is_found() {
            true => limited.with(AUTO).named("at_most", Value::size(self.budget())),
            false => limited.with(Value::size(self.budget())),
        }
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        self.charge(request.size(), request.size()).inspect_err(|&error| self.explain(error))?;
        let block = list::allocate(&*self.upstream, &self.ledger, request, self.note(request.size()));
        block.map(|block| exact(block, request)).inspect_err(|_| self.refund(request.size()))
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        let note = self.ledger.leave(address);
        // SAFETY: `Allocator::deallocate` is called with a live block of this allocator that nobody uses any more, by
        // handlers, adaptors, buffers and fronts.
        unsafe { self.upstream.deallocate(address) };
        self.refund(note.map_or(0, |note| note.asked));
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: `Allocator::usable_size` is called with a live block of this allocator, by handlers, adaptors,
        // buffers and fronts.
        self.ledger.get(address).map_or_else(|| unsafe { self.upstream.usable_size(address) }, |note| note.asked)
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: `Allocator::resize_in_place` is called with a live block whose lost end nobody uses, by handlers,
        // adaptors, buffers and fronts.
        unsafe {
            let Some(Noted { asked, site }) = self.ledger.get(address) else {
                return self.upstream.resize_in_place(address, size);
            };
            let more = size.saturating_sub(asked);
            if let Err(error) = self.charge(more, size) {
                failure::remember(error);
                return false;
            }
            let done = self.upstream.resize_in_place(address, size);
            if done {
                let site = if site == 0 { self.note(size).site } else { site };
                self.ledger.set(address, Noted { asked: size, site });
            }
            self.refund(if done { asked.saturating_sub(size) } else { more });
            done
        }
    }

    unsafe fn reallocate(&self, address: NonNull<u8>, request: Request) -> Result<Block, AllocError> {
        // SAFETY: `Allocator::reallocate` is called with a live block that is used at its new address alone, by
        // handlers, adaptors, buffers and fronts.
        unsafe {
            let Some(old) = self.ledger.get(address) else { return self.upstream.reallocate(address, request) };
            let asked = old.asked;
            request.check().inspect_err(|&error| failure::remember(error))?;
            let more = request.size().saturating_sub(asked);
            self.charge(more, request.size()).inspect_err(|&error| self.explain(error))?;
            let notes = (old, self.note(request.size()));
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
