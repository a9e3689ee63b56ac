//! A scope: the allocator of one block of code.
//!
//! It serves while it is open, in its own thread and process; else the nearest open scope around it does, and at the end
//! whoever served before all of them. For contexts leak: a child task, a callback and a thread that was handed the
//! context all still see it. What it gave it takes back for ever, from any thread.

use super::backing::{Backing, Closed, Hold, Refused, Slot};
use super::owner::Owner;
use super::passed::Passed;
use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::sync::lock::Lock;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, OnceLock};

/// So many other backings may serve a scope; more pass its requests on.
const LENDERS: usize = 3;

/// See the module.
pub struct Scope {
    backing: Arc<dyn Backing>,
    slot: AtomicU32,
    open: AtomicBool,
    /// `None`: a scope that any thread may use, for memory outside all blocks of code.
    owner: Option<Owner>,
    /// The scope around it. Its own thread alone asks.
    outer: Lock<Option<Arc<Self>>>,
    /// The backings of scopes around it that ever served it: they take their blocks back, also when those scopes are
    /// long gone.
    lenders: [OnceLock<Arc<dyn Backing>>; LENDERS],
    passed: Passed,
}

impl Scope {
    /// A scope of this thread, open. What it can't serve goes to `outer`, then to `before`.
    pub fn open(backing: Arc<dyn Backing>, outer: Option<Arc<Self>>, before: Arc<dyn Allocator>) -> Arc<Self> {
        let slot = backing.open();
        Arc::new(Self::new(backing, slot, Some(Owner::current()), outer, before))
    }

    /// The memory of a backing outside all scopes: for every thread, open for ever.
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

    /// Opens a closed scope again, for the same thread and with the same scopes around it. Nobody else may hold it, and
    /// none of its blocks live.
    pub fn reopen(&self) {
        if !self.open.load(Relaxed) {
            self.slot.store(self.backing.open().0, Relaxed);
            self.open.store(true, Release);
        }
    }

    /// Ends the scope, from any thread. Its live blocks stay valid. A second time nothing happens.
    pub fn close(&self) -> Closed {
        if self.owner.is_none() || !self.open.swap(false, Relaxed) {
            return Closed::default();
        }
        self.backing.close(self.slot())
    }

    /// Whether it is open, whoever asks.
    pub fn is_open(&self) -> bool {
        self.open.load(Acquire)
    }

    /// Whether it serves the thread that asks.
    #[inline]
    pub fn serves(&self) -> bool {
        self.open.load(Acquire) && self.owner.is_none_or(Owner::is_current)
    }

    /// Whose it is; nothing for memory outside all scopes.
    pub fn owner(&self) -> Option<Owner> {
        self.owner
    }

    /// What it takes its memory from.
    pub fn backing(&self) -> &Arc<dyn Backing> {
        &self.backing
    }

    /// The scope around it.
    pub fn outer(&self) -> Option<Arc<Self>> {
        self.outer.lock().clone()
    }

    /// Forgets that `ended` is the scope around it: the next one further out takes its place.
    pub fn go_past(&self, ended: &Arc<Self>) {
        let mut outer = self.outer.lock();
        let gone = outer.take_if(|outer| Arc::ptr_eq(outer, ended));
        if gone.is_some() {
            *outer = ended.outer();
        }
        drop(outer); // before what is gone: its end may be long
    }

    /// The scopes around it, from inside.
    fn around(&self) -> impl Iterator<Item = Arc<Self>> {
        std::iter::successors(self.outer(), |scope| scope.outer())
    }

    /// Who serves where no scope does.
    pub fn before(&self) -> &Arc<dyn Allocator> {
        self.passed.to()
    }

    /// Its place in its backing.
    pub fn slot(&self) -> Slot {
        Slot(self.slot.load(Relaxed))
    }

    /// How many of its blocks live.
    pub fn living(&self) -> usize {
        self.backing.living(self.slot())
    }

    /// The backings that its blocks may come from.
    fn backings(&self) -> impl Iterator<Item = &Arc<dyn Backing>> {
        std::iter::once(&self.backing).chain(self.lenders.iter().map_while(OnceLock::get))
    }

    /// Whether every block that it gave and that lives lies in firsttouch's segments.
    #[inline]
    pub fn is_inside(&self) -> bool {
        !self.passed.any() && self.backings().all(|backing| backing.in_segments())
    }

    /// Lets another backing serve it; whether there was room to note that.
    fn borrow_from(&self, backing: &Arc<dyn Backing>) -> bool {
        let known = |one: &Arc<dyn Backing>| std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(backing));
        self.backings().any(known) || self.lenders.iter().any(|lender| lender.set(backing.clone()).is_ok())
    }

    /// How it holds the block at `address`.
    pub fn hold(&self, address: NonNull<u8>) -> Hold {
        self.backing.hold(self.slot(), address)
    }

    /// Lets go of a block that it holds alone: it counts no more, and goes back to where it came from one day.
    pub fn release(&self, address: NonNull<u8>) {
        if self.hold(address) == Hold::Alone {
            self.backing.release(address);
        }
    }

    /// Whose the block at `address` is, if it is not this scope's or another's.
    pub fn elsewhere(&self, address: NonNull<u8>) -> Option<Arc<dyn Allocator>> {
        if self.passed.owns(address) {
            return Some(self.passed.to().clone());
        }
        self.backings().filter(|backing| backing.is_released(address)).find_map(|backing| backing.upstream())
    }

    /// Takes a block back, if this scope gave it out; whether it did.
    ///
    /// # Safety
    /// A live block begins at `address`, whoever's; nothing uses it any more if it is one that this scope gave out.
    #[inline]
    pub unsafe fn try_deallocate(&self, address: NonNull<u8>) -> bool {
        // SAFETY: the caller's promise; backings and the list know their own blocks.
        unsafe {
            self.backing.deallocate(address)
                || self.passed.deallocate(address)
                || self.backings().skip(1).any(|backing| backing.deallocate(address))
        }
    }

    /// Whether a live block that this scope gave begins at `address`.
    pub fn knows(&self, address: NonNull<u8>) -> bool {
        self.passed.owns(address) || self.backing_of(address).is_some()
    }

    fn backing_of(&self, address: NonNull<u8>) -> Option<(&dyn Backing, usize)> {
        self.backings().find_map(|backing| Some((&**backing, backing.usable_size(address)?)))
    }
}

// SAFETY: backings keep the promises, and so does whoever served before; each block goes back to who gave it.
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
        // SAFETY: the caller's promise.
        let known = unsafe { self.try_deallocate(address) };
        debug_assert!(known, "a block that came from here");
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        match self.backing_of(address) {
            Some((_, size)) => size,
            // SAFETY: it lives (caller) and no backing has it, so it was passed on.
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
