//! A bundled third-party allocator, one instance for the process, on memory of ours: it does its own bookkeeping, and
//! all its blocks lie in segments that belong to us.
//!
//! Requests that it cannot serve, the largest sizes and alignments, get their own pages.

mod gate;
mod idle;
mod library;
mod pages;
#[cfg(test)]
mod tests;

use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::failure;
use crate::heap::heap::{self, Heap};
use crate::heap::purger;
use crate::heap::reserve::Reserve;
use crate::os::Errno;
use crate::stats::Stats;
use crate::sync::lock::Lock;
use gate::Gate;
pub use library::Library;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Requests of this size and more get their own pages.
const OWN_PAGES: usize = 1 << 30;
/// A block of at least this size that shrinks below half of its size moves.
const MOVE_MIN: usize = 64 << 10;

/// See the module.
pub struct Embedded<L: Library> {
    /// The memory of the embedded allocator.
    space: Reserve,
    /// Blocks with their own pages. All are of the huge kind, which tells them apart.
    pages: Heap,
    gate: Gate,
    /// Held while memory is decommitted or the allocator grows; acquired before all other locks.
    purging: Lock<()>,
    started: AtomicBool,
    /// Bytes that it cannot decommit with nothing in use: its metadata, and what it caches for threads. They count
    /// neither as idle nor as mapped.
    books: AtomicUsize,
    idle: idle::Idle,
    library: PhantomData<L>,
}

/// The process's instance is never dropped; only one that lost the race to become it is.
impl<L: Library> Drop for Embedded<L> {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
    }
}

impl<L: Library> Embedded<L> {
    /// Returns the process's instance.
    ///
    /// # Errors
    /// If there is no memory for its metadata.
    pub fn get() -> Result<Arc<Self>, AllocError> {
        let one = L::one().get_or_make(Self::new);
        if !one.started.load(Relaxed) {
            let _one_at_a_time = one.purging.lock();
            if !one.started.load(Relaxed) {
                L::start(one).map_err(|error| one.failed(heap::refused(L::UNIT, error)))?;
                one.books.store(one.space.held().0, Relaxed);
                one.started.store(true, Relaxed);
            }
        }
        Ok(one.clone())
    }

    fn new() -> Arc<Self> {
        let one = Arc::new(Self {
            space: Reserve::new(L::UNIT),
            pages: Heap::new(),
            gate: Gate::new(),
            purging: Lock::new(()),
            started: AtomicBool::new(false),
            books: AtomicUsize::new(0),
            idle: idle::Idle::default(),
            library: PhantomData,
        });
        let address = Arc::as_ptr(&one);
        // SAFETY: it is removed when it is dropped.
        unsafe {
            one.pages.set_owner(address);
            purger::enter(address);
        }
        one
    }

    /// Takes address space for the embedded allocator, permanently.
    pub(super) fn take(&'static self, bytes: usize, align: usize) -> Result<usize, Errno> {
        self.space.take(bytes, align, std::ptr::from_ref(self))
    }

    /// The memory of the embedded allocator.
    pub(super) fn space(&self) -> &Reserve {
        &self.space
    }

    /// Runs `f` while no fork can happen.
    #[cfg(feature = "mimalloc")]
    pub(super) fn apart_from_forks(&self, body: impl FnOnce()) {
        let _behind = self.gate.enter();
        body();
    }

    fn failed(&self, error: AllocError) -> AllocError {
        failure::remember(error);
        error
    }

    fn serve(&self, request: Request) -> Option<Block> {
        let mut counts = self.gate.enter();
        let address = NonNull::new(L::allocate(request))?;
        // SAFETY: the block was just allocated.
        let size = unsafe { L::usable(address.as_ptr()) };
        counts.allocations += 1;
        counts.allocated_bytes += request.size() as u64;
        self.gate.note(&mut counts, size as isize);
        Some(Block { address, size, zeroed: request.is_zeroed() })
    }

    /// Tries again with more address space, or after purging.
    #[cold]
    fn serve_again(&self, request: Request) -> Option<Block> {
        if self.space.take_refusal().is_none() {
            let one = L::one().get()?;
            let _one_at_a_time = self.purging.lock();
            L::grow(one, request.size() + request.align());
        } else {
            self.purge();
        }
        self.serve(request)
    }

    /// Decommits what is not in use. Returns the number of bytes.
    fn purge(&self) -> usize {
        let _one_at_a_time = self.purging.lock();
        let (closed, (_, before)) = (self.space.closed(), self.gate.sum());
        L::purge();
        let open = self.space.held().0;
        // What was freed meanwhile may have come too late to be decommitted: it is idle.
        let (active, after) = self.gate.sum();
        let freed = (after.freed_bytes - before.freed_bytes) as usize;
        self.books.store(open.saturating_sub(active + freed), Relaxed);
        self.space.closed() - closed
    }
}

// SAFETY: the embedded allocator keeps the promises (see `Library`), on memory of ours; separate spans are whole
// pages, fresh ones read zero, and an address tells which of the two it is (law 4).
unsafe impl<L: Library> Allocator for Embedded<L> {
    fn describe(&self) -> Description {
        Description::of(L::NAME)
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().map_err(|error| self.failed(error))?;
        if request.size() >= OWN_PAGES || request.align() > L::MAX_ALIGN {
            return self.serve_pages(request);
        }
        let Some(block) = self.serve(request).or_else(|| self.serve_again(request)) else {
            return self.serve_pages(request);
        };
        if self.space.was_opened() {
            self.idle.look_at_bound();
            purger::ensure();
        }
        Ok(block)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        if Self::has_pages(address) {
            if let Some((kind, span)) = heap::span_at(address.as_ptr() as usize) {
                self.pages.give_back(kind, span);
            }
            return;
        }
        let mut counts = self.gate.enter();
        // SAFETY: `Allocator::deallocate` is called with a live block of this allocator that nobody uses any more, by
        // handlers, adaptors, buffers and fronts; the block has no pages of its own, so it is the embedded allocator's.
        let size = unsafe {
            let size = L::usable(address.as_ptr());
            L::free(address.as_ptr());
            size
        };
        self.gate.note(&mut counts, -(size as isize));
        drop(counts);
        self.vacate(size);
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        if Self::has_pages(address) {
            return heap::span_at(address.as_ptr() as usize).map_or(0, |(_, span)| span.bytes());
        }
        // SAFETY: as for `deallocate`.
        unsafe { L::usable(address.as_ptr()) }
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: `Allocator::resize_in_place` is called with a live block whose lost end nobody uses, by handlers,
        // adaptors, buffers and fronts.
        let usable = unsafe { self.usable_size(address) };
        if size <= usable && (size >= usable / 2 || usable < MOVE_MIN) {
            return true;
        }
        if Self::has_pages(address) || size >= OWN_PAGES {
            return false;
        }
        let mut counts = self.gate.enter();
        // SAFETY: as for `deallocate`.
        unsafe {
            let done = L::resize(address.as_ptr(), size);
            let change = L::usable(address.as_ptr()) as isize - usable as isize;
            self.gate.note(&mut counts, change);
            done
        }
    }

    fn trim(&self) -> usize {
        self.purge() + self.pages.purge(0, usize::MAX).iter().sum::<usize>()
    }

    fn stats(&self) -> Stats {
        let (active, counts) = self.gate.sum();
        let ((open, mapped), pages, books) = (self.space.held(), self.pages.held(), self.books.load(Relaxed));
        let idle = open.saturating_sub(active + books) + pages.dirty;
        let active = active + pages.out;
        Stats {
            active,
            in_use: active,
            idle,
            mapped: (mapped + pages.mapped).saturating_sub(books).max(active + idle),
            purged_bytes: self.space.closed() as u64,
            allocations: counts.allocations,
            allocated_bytes: counts.allocated_bytes,
            ..Stats::default()
        }
    }

    fn in_segments(&self) -> bool {
        true
    }

    fn calls_out(&self) -> bool {
        false
    }
}
