//! A scope: the allocator of one block of code.
//!
//! It serves while it is open, in its own thread and process. Otherwise the nearest open enclosing scope serves, or
//! the allocator that was in place before all of them, because contexts leak: a child task, a callback and a thread
//! that was handed the context still refer to the scope. Blocks that it handed out may be freed at any time, from any
//! thread.

use super::backing::{Backing, Closed, Hold, Refused, Slot};
use super::owner::Owner;
use super::passed::Passed;
use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::sync::lock::Lock;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, OnceLock};

/// The most backings of other scopes that may serve a scope; requests beyond that are passed on.
const LENDERS: usize = 3;

/// See the module.
pub struct Scope {
    backing: Arc<dyn Backing>,
    slot: AtomicU32,
    open: AtomicBool,
    /// `None` for a scope that any thread may use, for memory outside all blocks of code.
    owner: Option<Owner>,
    /// The enclosing scope. Only the scope's own thread reads it.
    outer: Lock<Option<Arc<Self>>>,
    /// The backings of enclosing scopes that ever served this scope. They free their blocks even after those scopes
    /// are gone.
    lenders: [OnceLock<Arc<dyn Backing>>; LENDERS],
    passed: Passed,
}

impl Scope {
    /// Opens a scope of the calling thread. Requests that it cannot serve go to `outer`, then to `before`.
    pub fn open(backing: Arc<dyn Backing>, outer: Option<Arc<Self>>, before: Arc<dyn Allocator>) -> Arc<Self> {
        let slot = backing.open();
        Arc::new(Self::new(backing, slot, Some(Owner::current()), outer, before))
    }

    /// Makes the memory of a backing available outside all scopes: to every thread, permanently.
    pub fn outside(backing: Arc<dyn Backing>, before: Arc<dyn Allocator>) -> Arc<Self> {
        Arc::new(Self::new(backing, Slot::OUTSIDE, None, None, before))
    }

    fn new(
        backing: Arc<dyn Backing>,
        slot: Slot,
        owner: Option<Owner>,
        outer: Option<Arc<Self>>,
        before: Arc<dyn Allocator>,
    ) -> Self {
        Self {
            backing,
            slot: AtomicU32::new(slot.0),
            open: AtomicBool::new(true),
            owner,
            outer: Lock::new(outer),
            lenders: [const { OnceLock::new() }; LENDERS],
            passed: Passed::new(before),
        }
    }

    /// Opens a closed scope again, for the same thread and within the same scopes. There must be no other reference to
    /// it, and none of its blocks may be live.
    pub fn reopen(&self) {
        if !self.open.load(Relaxed) {
            self.slot.store(self.backing.open().0, Relaxed);
            self.open.store(true, Release);
        }
    }

    /// Ends the scope, from any thread. Its live blocks stay valid. Has no effect if the scope has ended already.
    pub fn close(&self) -> Closed {
        if self.owner.is_none() || !self.open.swap(false, Relaxed) {
            return Closed::default();
        }
        self.backing.close(self.slot())
    }

    /// Whether it is open, regardless of the calling thread.
    pub fn is_open(&self) -> bool {
        self.open.load(Acquire)
    }

    /// Whether it serves the calling thread.
    #[inline]
    pub fn serves(&self) -> bool {
        self.open.load(Acquire) && self.owner.is_none_or(Owner::is_current)
    }

    /// Its owner; `None` for memory outside all scopes.
    pub fn owner(&self) -> Option<Owner> {
        self.owner
    }

    /// The backing that it allocates from.
    pub fn backing(&self) -> &Arc<dyn Backing> {
        &self.backing
    }

    /// The enclosing scope.
    pub fn outer(&self) -> Option<Arc<Self>> {
        self.outer.lock().clone()
    }

    /// Replaces the enclosing scope by the next one out if that is `ended`.
    pub fn go_past(&self, ended: &Arc<Self>) {
        let mut outer = self.outer.lock();
        let gone = outer.take_if(|outer| Arc::ptr_eq(outer, ended));
        if gone.is_some() {
            *outer = ended.outer();
        }
        drop(outer); // before `ended` is dropped, which may take long
    }

    /// The enclosing scopes, innermost first.
    fn around(&self) -> impl Iterator<Item = Arc<Self>> {
        std::iter::successors(self.outer(), |scope| scope.outer())
    }

    /// The allocator that serves if no scope does.
    pub fn before(&self) -> &Arc<dyn Allocator> {
        self.passed.to()
    }

    /// Its slot in its backing.
    pub fn slot(&self) -> Slot {
        Slot(self.slot.load(Relaxed))
    }

    /// The number of its live blocks.
    pub fn living(&self) -> usize {
        self.backing.living(self.slot())
    }

    /// The backings that its blocks may come from.
    fn backings(&self) -> impl Iterator<Item = &Arc<dyn Backing>> {
        std::iter::once(&self.backing).chain(self.lenders.iter().map_while(OnceLock::get))
    }

    /// Whether all its live blocks lie in firsttouch's segments.
    #[inline]
    pub fn is_inside(&self) -> bool {
        !self.passed.any() && self.backings().all(|backing| backing.in_segments())
    }

    /// Allows another backing to serve this scope; `false` if there is no room to record it.
    fn borrow_from(&self, backing: &Arc<dyn Backing>) -> bool {
        let known = |one: &Arc<dyn Backing>| std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(backing));
        self.backings().any(known) || self.lenders.iter().any(|lender| lender.set(backing.clone()).is_ok())
    }

    /// How it holds the block at `address`.
    pub fn hold(&self, address: NonNull<u8>) -> Hold {
        self.backing.hold(self.slot(), address)
    }

    /// Releases a block that it holds alone: it no longer counts, and is freed by the allocator that it came from.
    pub fn release(&self, address: NonNull<u8>) {
        if self.hold(address) == Hold::Alone {
            self.backing.release(address);
        }
    }

    /// The allocator of the block at `address`, if that is neither this scope nor another.
    pub fn elsewhere(&self, address: NonNull<u8>) -> Option<Arc<dyn Allocator>> {
        if self.passed.owns(address) {
            return Some(self.passed.to().clone());
        }
        self.backings().filter(|backing| backing.is_released(address)).find_map(|backing| backing.upstream())
    }

    /// Frees the block at `address` if this scope handed it out; returns whether it did.
    ///
    /// # Safety
    /// `address` is a live block of any allocator; if this scope handed it out, it is no longer in use.
    #[inline]
    pub unsafe fn try_deallocate(&self, address: NonNull<u8>) -> bool {
        // SAFETY: a live block of any allocator, unused if it is this scope's (handlers, and `deallocate` below);
        // backings and the ledger recognize their own blocks.
        unsafe {
            self.backing.deallocate(address)
                || self.passed.deallocate(address)
                || self.backings().skip(1).any(|backing| backing.deallocate(address))
        }
    }

    /// Whether a live block that this scope handed out begins at `address`.
    pub fn knows(&self, address: NonNull<u8>) -> bool {
        self.passed.owns(address) || self.backing_of(address).is_some()
    }

    fn backing_of(&self, address: NonNull<u8>) -> Option<(&dyn Backing, usize)> {
        self.backings().find_map(|backing| Some((&**backing, backing.usable_size(address)?)))
    }
}

// SAFETY: the backings and the other allocator keep the promises of `Allocator`, and each block is freed by the one
// that allocated it.
unsafe impl Allocator for Scope {
    fn describe(&self) -> Description {
        let backing = self.backing.describe();
        if self.owner.is_some() { Description::of("scratch").with(backing) } else { backing }
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        if self.serves() {
            match self.backing.allocate(self.slot(), request) {
                Err(Refused::Fragmented) => {}
                served => return served.map_err(Refused::error),
            }
        }
        if self.owner.is_some_and(Owner::is_current) {
            for scope in self.around().filter(|scope| scope.serves() && self.borrow_from(&scope.backing)) {
                match scope.backing.allocate(scope.slot(), request) {
                    Err(Refused::Fragmented) => {}
                    served => return served.map_err(Refused::error),
                }
            }
        }
        self.passed.allocate(request)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: `Allocator::deallocate` is called with a live block of this allocator that nobody uses any more, by
        // handlers, adaptors, buffers and fronts.
        let known = unsafe { self.try_deallocate(address) };
        debug_assert!(known, "the block is not one of this scope");
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        match self.backing_of(address) {
            Some((_, size)) => size,
            // SAFETY: it is live (`Allocator::usable_size`) and not in a backing, so it was passed on.
            None => unsafe { self.passed.to().usable_size(address) },
        }
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: as for `usable_size`.
        unsafe {
            match self.backing_of(address) {
                Some((backing, _)) => backing.resize_in_place(address, size),
                None => self.passed.to().resize_in_place(address, size),
            }
        }
    }

    fn in_segments(&self) -> bool {
        self.backing.in_segments() && self.before().in_segments()
    }

    fn owns(&self, address: NonNull<u8>) -> Option<bool> {
        Some(self.knows(address))
    }
}
