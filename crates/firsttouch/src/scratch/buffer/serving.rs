//! The [`Backing`] of scopes that a buffer implements.

use super::super::backing::{Backing, Closed, Damage, Hold, Refused, Slot, Survivor};
use super::super::space::granules;
use super::large::Large;
use super::state::BlockRequest;
use super::{Buffer, Chunks, Source, Storage};
use crate::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use crate::failure;
use std::ptr::NonNull;
use std::sync::Arc;

/// Remembers a refusal as the last failure.
#[cold]
fn remembered(refused: Refused) -> Refused {
    if let Refused::Failed(error) = refused {
        failure::pass_on(error);
    }
    refused
}

// SAFETY: a space hands out a granule only while no live block lies on it, and large blocks are the upstream's;
// closing and resetting return only memory without live blocks (law 8); zeroed requests are cleared below (law 2).
unsafe impl Backing for Buffer {
    fn open(&self) -> Slot {
        let mut state = self.state.lock();
        state.spaces.touch();
        state.slots.open()
    }

    fn close(&self, slot: Slot) -> Closed {
        let mut state = self.state.lock();
        let (survivors, bytes) = state.slots.count(slot);
        if !state.slots.close(slot) {
            return Closed::default();
        }
        let damage = state.find_damage();
        self.see_to_excess(state);
        Closed { survivors, bytes, damage }
    }

    #[inline]
    fn allocate(&self, slot: Slot, request: Request) -> Result<Block, Refused> {
        if let Err(error) = request.check() {
            return Err(remembered(error.into()));
        }
        let site = self.site();
        if let Source::Chunks(from) = &self.source
            && request.size().max(request.align()) > from.sizes.bumped
        {
            return self.take_large(from, slot, request, site).map_err(remembered);
        }
        let Some(need) = granules(request.size()) else {
            return Err(remembered(AllocError::new(request.size(), Limit::Size).into()));
        };
        // Passed field by field, because a copy of the whole request would wait for the caller's stores.
        let taken = self.state.lock().take(slot, need, request.align(), site);
        let taken = match taken {
            Some(taken) => taken,
            None => self.serve_otherwise(BlockRequest { slot, request, need, site }).map_err(remembered)?,
        };
        let dirty = taken.dirty.min(request.size());
        if request.is_zeroed() && dirty > 0 {
            // SAFETY: the block was just allocated and is not in use yet.
            unsafe { taken.address.write_bytes(0, dirty) };
        }
        Ok(Block { address: taken.address, size: taken.size, zeroed: request.is_zeroed() || dirty == 0 })
    }

    #[inline]
    unsafe fn deallocate(&self, address: NonNull<u8>) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            return state.spaces.find(address.as_ptr() as usize).is_some();
        }
        if state.give(address.as_ptr() as usize) {
            return true;
        }
        drop(state);
        // SAFETY: `Backing::deallocate` is called with a live block of this buffer that nobody uses (`Scope`).
        unsafe { self.give_large(address) }
    }

    fn usable_size(&self, address: NonNull<u8>) -> Option<usize> {
        let mut state = self.state.lock();
        if let Some((space, at)) = state.spaces.find(address.as_ptr() as usize) {
            return Some(space.block(at).0);
        }
        drop(state);
        self.large_at(address).map(|large| large.usable)
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        let most = match &self.source {
            Source::Chunks(from) => from.sizes.bumped,
            Source::Storage(_) => usize::MAX,
        };
        let mut state = self.state.lock();
        if state.closed {
            // The parent's records are not changed; the bytes that the block has may be used.
            return state.spaces.find(address.as_ptr() as usize).is_some_and(|(space, at)| size <= space.block(at).0);
        }
        let need = granules(size).filter(|_| size <= most);
        if let Some(done) = state.resize(address.as_ptr() as usize, need) {
            return done;
        }
        drop(state);
        // SAFETY: `Backing::resize_in_place` is called with a live block of this buffer (`Scope`).
        unsafe { self.resize_large(address, size) }
    }

    fn survivors(&self, slot: Slot) -> Vec<Survivor> {
        let mut list = Vec::new();
        let state = self.state.lock();
        state.survivors(slot, &mut list);
        let place = state.slots.index(slot);
        drop(state);
        if let (Source::Chunks(Chunks { large, .. }), Some(place)) = (&self.source, place) {
            large.each(|address, large| {
                if large.place == place && !large.released {
                    Survivor { address, size: large.usable, site: large.site }.join(&mut list);
                }
            });
        }
        list
    }

    fn living(&self, slot: Slot) -> usize {
        self.state.lock().slots.count(slot).0
    }

    fn hold(&self, slot: Slot, address: NonNull<u8>) -> Hold {
        let mut state = self.state.lock();
        let Some(place) = state.slots.index(slot) else { return Hold::Elsewhere };
        if let Some((space, at)) = state.spaces.find(address.as_ptr() as usize) {
            return if space.block(at).1.slot == place { Hold::Shared } else { Hold::Elsewhere };
        }
        drop(state);
        let own = |large: Large| large.place == place && !large.released;
        if self.large_at(address).is_some_and(own) { Hold::Alone } else { Hold::Elsewhere }
    }

    fn release(&self, address: NonNull<u8>) {
        self.release_large(address);
    }

    fn is_released(&self, address: NonNull<u8>) -> bool {
        self.large_at(address).is_some_and(|large| large.released)
    }

    fn upstream(&self) -> Option<Arc<dyn Allocator>> {
        match &self.source {
            Source::Chunks(Chunks { upstream, .. }) => Some(upstream.clone()),
            Source::Storage(_) => None,
        }
    }

    fn damage(&self) -> Option<Damage> {
        self.state.lock().find_damage()
    }

    fn used(&self) -> usize {
        self.state.lock().used
    }

    fn capacity(&self) -> usize {
        self.state.lock().held
    }

    fn peak(&self) -> usize {
        self.state.lock().peak
    }

    fn depth(&self) -> usize {
        self.state.lock().slots.depth
    }

    fn reset(&self) -> Result<(), usize> {
        let mut state = self.state.lock();
        if state.slots.depth > 0 {
            return Err(state.slots.depth);
        }
        state.peak = state.used;
        state.damage = state.find_damage();
        drop(state);
        self.give_back_all();
        Ok(())
    }

    fn in_segments(&self) -> bool {
        matches!(&self.source, Source::Chunks(Chunks { upstream, .. }) if upstream.in_segments())
    }

    fn describe(&self) -> Description {
        match &self.source {
            Source::Chunks(Chunks { upstream, options, .. }) => Description::of("ScratchBuffer")
                .with(options.chunk_size)
                .named("upstream", upstream.describe())
                .named("limit", options.limit)
                .named("debug", options.debug),
            Source::Storage(Storage { size, debug, .. }) => {
                Description::of("FixedBuffer").with(*size).named("debug", *debug)
            }
        }
    }
}
