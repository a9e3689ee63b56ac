//! The ledger: the live blocks of an allocator by address, each with a note. Adaptors have one, and sources that keep their
//! blocks outside of our segments.
//!
//! It is out of band (law 4), in shards with a lock each. Removing a block allocates nothing (law 5). The locks are held
//! around forks, so that a child can continue at once (law 6).

#![allow(unsafe_code)] // Safety: the purger knows a ledger by its address, which it has until it is dropped.

use crate::address_map;
use crate::allocator::{AllocError, Allocator, Block, BlockList, Limit, Request};
use crate::heap::purger::{self, Registered};
use crate::sync::lock::{AtFork, Lock, Padded, RawLock};
use crate::{failure, heap};
use rustc_hash::FxHasher;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const SHARDS: usize = 16;

/// One shard of a [`Ledger`], by address.
pub type BlockMap<T> = HashMap<usize, T, BuildHasherDefault<FxHasher>>;

/// The live blocks of an allocator, each with a note, a `T`.
pub struct Ledger<T: Copy + Send + 'static> {
    shards: [Padded<Lock<BlockMap<T>>>; SHARDS],
    /// Blocks that are being relocated: each shard has room for this many blocks more.
    relocating: AtomicUsize,
}

impl<T: Copy + Send + 'static> Ledger<T> {
    /// An empty ledger.
    pub fn new() -> Arc<Self> {
        let shards = std::array::from_fn(|_| Padded(Lock::new(BlockMap::default())));
        let ledger = Arc::new(Self { shards, relocating: AtomicUsize::new(0) });
        let address: *const Self = Arc::as_ptr(&ledger);
        // SAFETY: the ledger stays where it is until it is dropped, which unregisters it.
        unsafe { purger::enter(address) };
        ledger
    }

    fn shard(&self, address: usize) -> &Lock<BlockMap<T>> {
        // Pages, and blocks within a page, go to different shards.
        &self.shards[((address >> 6) ^ (address >> 12)) % SHARDS].0
    }

    /// Enters a block.
    ///
    /// # Errors
    /// [`Limit::Upstream`] for `asked` bytes, if there is no memory for the entry. Nothing changes then.
    pub fn enter(&self, address: NonNull<u8>, asked: usize, note: T) -> Result<(), AllocError> {
        let address = address.as_ptr() as usize;
        address_map::note_outside(address);
        heap::mark_listed(address);
        let mut shard = self.shard(address).lock();
        let more = 1 + self.relocating.load(Relaxed);
        shard.try_reserve(more).map_err(|_| AllocError::new(asked, Limit::Upstream))?;
        shard.insert(address, note);
        Ok(())
    }

    /// Calls `relocate` with the note of a block, which it may move; it returns the block and its new note. Meanwhile the block is not
    /// listed, since its old address may be another's before `relocate` returns. The new entry needs no memory.
    ///
    /// # Errors
    /// Those of `relocate`, which then changed nothing. [`Limit::Upstream`] for `asked` bytes, and it is not called, if the block is not
    /// listed or there is no memory for an entry.
    pub(crate) fn relocate(
        &self,
        address: NonNull<u8>,
        asked: usize,
        relocate: impl FnOnce(T) -> Result<(Block, T), AllocError>,
    ) -> Result<Block, AllocError> {
        self.relocating.fetch_add(1, Relaxed);
        let mut shards = self.shards.iter();
        let has_room = shards.all(|shard| shard.0.lock().try_reserve(self.relocating.load(Relaxed)).is_ok());
        let old = if has_room { self.leave(address) } else { None };
        let moved = old.map(|old| {
            let moved = relocate(old);
            let (to, note) = moved.map_or((address, old), |(block, note)| (block.address, note));
            let to = to.as_ptr() as usize;
            address_map::note_outside(to);
            heap::mark_listed(to);
            self.shard(to).lock().insert(to, note);
            moved.map(|(block, _)| block)
        });
        self.relocating.fetch_sub(1, Relaxed);
        moved.unwrap_or(Err(AllocError::new(asked, Limit::Upstream)))
    }

    /// Allocates a block from `upstream` and enters it. If there is no memory for the entry, nothing is allocated.
    pub(crate) fn allocate(
        &self,
        upstream: &dyn Allocator,
        request: Request,
        note: impl FnOnce(Block) -> T,
    ) -> Result<Block, AllocError> {
        let block = upstream.allocate(request)?;
        self.enter(block.address, request.size(), note(block)).inspect_err(|&error| {
            failure::remember(error);
            // SAFETY: the block was just allocated and is not in use.
            unsafe { upstream.deallocate(block.address) };
        })?;
        Ok(block)
    }

    /// Removes a block and returns its note.
    pub fn leave(&self, address: NonNull<u8>) -> Option<T> {
        let address = address.as_ptr() as usize;
        self.shard(address).lock().remove(&address)
    }

    /// The note of a block.
    pub fn get(&self, address: NonNull<u8>) -> Option<T> {
        let address = address.as_ptr() as usize;
        self.shard(address).lock().get(&address).copied()
    }

    /// Calls `each` with every block. Blocks may be entered and removed meanwhile.
    pub fn each(&self, mut each: impl FnMut(usize, T)) {
        for shard in &self.shards {
            shard.0.lock().iter().for_each(|(&address, &note)| each(address, note));
        }
    }
}

impl<T: Copy + Send + 'static> BlockList for Ledger<T> {
    fn contains(&self, address: NonNull<u8>) -> bool {
        self.get(address).is_some()
    }

    fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.0.lock().is_empty())
    }
}

impl<T: Copy + Send + 'static> AtFork for Ledger<T> {
    fn locks(&self, each: &mut dyn FnMut(&RawLock)) {
        self.shards.locks(each);
    }
}

impl<T: Copy + Send + 'static> Registered for Ledger<T> {}

impl<T: Copy + Send + 'static> Drop for Ledger<T> {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
    }
}
