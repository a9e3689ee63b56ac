//! A scope: the allocator of one block of code.
//!
//! It serves while it is open, in its own thread and process; else the nearest open scope around it does, and at the end
//! whoever served before all of them. For contexts leak: a child task, a callback and a thread that was handed the
//! context all still see it. What it gave it takes back for ever, from any thread.

use super::backing::{Backing, Closed, Hold, Refused, Slot, Survivor};
use super::owner::Owner;
use super::passed::Passed;
use crate::allocator::{AllocError, Allocator, Block, Request};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, OnceLock};

/// See the module.
pub struct Scope {
    backing: Arc<dyn Backing>,
    slot: AtomicU32,
    open: AtomicBool,
    /// `None`: a scope that any thread may use, for memory outside all blocks of code.
    owner: Option<Owner>,
    outer: Option<Arc<Self>>,
    passed: Passed,
    /// Blocks that it let go of, which its backing's upstream takes back.
    released: OnceLock<Passed>,
    /// Whether all that scopes give lies in firsttouch's segments.
    inside: bool,
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
        let inside = backing.in_segments() && outer.as_ref().is_none_or(|outer| outer.inside);
        Self {
            backing,
            slot: AtomicU32::new(slot.0),
            open: AtomicBool::new(true),
            owner,
            outer,
            passed: Passed::new(before),
            released: OnceLock::new(),
            inside,
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

    /// Ends the scope, from any thread. Its living blocks stay valid. A second time nothing happens.
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
    pub fn outer(&self) -> Option<&Arc<Self>> {
        self.outer.as_ref()
    }

    /// Who serves where no scope does.
    pub fn before(&self) -> &Arc<dyn Allocator> {
        self.passed.to()
    }

    /// Its place in its backing.
    pub fn slot(&self) -> Slot {
        Slot(self.slot.load(Relaxed))
    }

    /// Its living blocks.
    pub fn survivors(&self) -> Vec<Survivor> {
        self.backing.survivors(self.slot())
    }

    /// How many they are.
    pub fn living(&self) -> usize {
        self.backing.living(self.slot())
    }

    /// Whether every block that it gave and that lives lies in firsttouch's segments.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.inside && !self.passed.any() && self.released.get().is_none_or(|released| !released.any())
    }

    /// How it holds the block at `address`.
    pub fn hold(&self, address: NonNull<u8>) -> Hold {
        self.backing.hold(self.slot(), address)
    }

    /// Lets go of a block that it holds alone: it counts no more, and its owner takes it back one day.
    pub fn release(&self, address: NonNull<u8>) {
        let Some(size) = self.backing.usable_size(address).filter(|_| self.hold(address) == Hold::Alone) else {
            return;
        };
        let Some(owner) = self.backing.upstream() else { return };
        // Noted first: where there is no memory for that, the block stays what it was.
        let released = self.released.get_or_init(|| Passed::new(owner));
        if released.adopt(address, size).is_ok() {
            self.backing.release(address);
        }
    }

    /// The blocks that others take back.
    fn others(&self) -> impl Iterator<Item = &Passed> {
        [Some(&self.passed), self.released.get()].into_iter().flatten()
    }

    /// Who takes the block at `address` back, if that is not this scope or one around it.
    pub fn elsewhere(&self, address: NonNull<u8>) -> Option<&Arc<dyn Allocator>> {
        self.others().find(|passed| passed.owns(address)).map(Passed::to)
    }

    /// It and the scopes around it, from inside.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |scope| scope.outer.as_deref())
    }

    /// Takes a block back, if this scope gave it out; whether it did.
    ///
    /// # Safety
    /// A living block begins at `address`, whoever's; nothing uses it any more if it is one that this scope gave out.
    #[inline]
    pub unsafe fn try_deallocate(&self, address: NonNull<u8>) -> bool {
        // SAFETY: the caller's promise; backings and the list know their own blocks.
        unsafe {
            self.backing.deallocate(address)
                || self.others().any(|passed| passed.deallocate(address))
                || self.chain().skip(1).any(|scope| scope.backing.deallocate(address))
        }
    }

    /// Whether a living block that this scope gave begins at `address`.
    pub fn knows(&self, address: NonNull<u8>) -> bool {
        self.elsewhere(address).is_some() || self.backing_of(address).is_some()
    }

    fn backing_of(&self, address: NonNull<u8>) -> Option<(&dyn Backing, usize)> {
        self.chain().find_map(|scope| Some((&*scope.backing, scope.backing.usable_size(address)?)))
    }
}

// SAFETY: backings keep the promises, and so does whoever served before; each block goes back to who gave it.
unsafe impl Allocator for Scope {
    fn expression(&self) -> String {
        let backing = self.backing.expression();
        if self.owner.is_some() { format!("scratch({backing})") } else { backing }
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        for scope in self.chain().filter(|scope| scope.serves()) {
            match scope.backing.allocate(scope.slot(), request) {
                Ok(block) => return Ok(block),
                Err(Refused::Failed(error)) => return Err(error),
                Err(Refused::Crowded) => {}
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
            // SAFETY: it lives (caller) and no backing has it, so it is on a list of another's.
            None => self.elsewhere(address).map_or(0, |owner| unsafe { owner.usable_size(address) }),
        }
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: as for `usable_size`.
        unsafe {
            match self.backing_of(address) {
                Some((backing, _)) => backing.resize_in_place(address, size),
                None => self.elsewhere(address).is_some_and(|owner| owner.resize_in_place(address, size)),
            }
        }
    }

    fn in_segments(&self) -> bool {
        self.inside && self.before().in_segments()
    }

    fn owns(&self, address: NonNull<u8>) -> Option<bool> {
        Some(self.knows(address))
    }
}
