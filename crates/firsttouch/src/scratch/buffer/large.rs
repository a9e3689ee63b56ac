//! Large blocks: each is a block of the upstream, so one that outlives its scope keeps no other memory alive. They are
//! counted, limited and listed like the rest.

use super::super::backing::{Refused, Slot};
use super::super::space::{FREED, GRANULE};
use super::options::Sizes;
use super::state::State;
use super::{Buffer, Chunks, Source};
use crate::allocator::{AllocError, Block, Limit, Request};
use crate::failure;
use crate::sync::brief_lock::Guard;
use std::ptr::NonNull;

/// What is recorded of a live large block.
#[derive(Clone, Copy)]
pub(super) struct Large {
    /// The usable size, which counts as used and held.
    pub usable: usize,
    /// The index of its scope.
    pub place: u32,
    pub site: u64,
    /// Whether its scope released it, so that it no longer counts.
    pub released: bool,
}

/// The bytes that are charged for a block of `size` before it is allocated.
fn counted(size: usize) -> usize {
    size.next_multiple_of(GRANULE)
}

impl Buffer {
    /// Allocates a large block.
    pub(super) fn take_large(&self, from: &Chunks, slot: Slot, request: Request, site: u64) -> Result<Block, Refused> {
        let Chunks { upstream, sizes, large: list, .. } = from;
        let size = counted(request.size());
        let mut state = self.charge(sizes, size, request.size())?;
        let (place, peak) = (state.place(slot), state.peak);
        state.on_alloc(place, size);
        drop(state);
        let before = failure::now();
        let block = upstream.allocate(request).or_else(|_| {
            failure::retract(before);
            self.give_back_all();
            upstream.allocate(request)
        });
        let listed = block.and_then(|block| {
            let block = Block { size: block.size.min(size), ..block }; // bytes beyond that were not charged
            let note = Large { usable: block.size, place, site, released: false };
            list.enter(block.address, request.size(), note).inspect_err(|_| {
                // SAFETY: the block was just allocated and is not in use.
                unsafe { upstream.deallocate(block.address) };
            })?;
            Ok(block)
        });
        match listed {
            Ok(block) if block.size == size => {}
            Ok(block) => {
                let mut state = self.state.lock();
                state.held = state.held - size + block.size;
                state.changed(place, size, block.size);
            }
            Err(_) => {
                let mut state = self.state.lock();
                state.held -= size;
                state.on_free(place, size);
                state.peak = peak.max(state.used); // it was never live
            }
        }
        Ok(listed.map_err(|error| AllocError { asked: request.size(), ..error })?)
    }

    /// Charges `more` bytes unless that exceeds the limit; idle chunks are returned first. The state stays locked.
    pub(super) fn charge(&self, sizes: &Sizes, more: usize, asked: usize) -> Result<Guard<'_, State>, Refused> {
        for tried in [false, true] {
            let mut state = self.state.lock();
            if state.held.checked_add(more).is_some_and(|sum| sum <= sizes.limit) {
                state.held += more;
                return Ok(state);
            }
            if tried {
                let (held, used) = (state.held, state.used);
                return Err(AllocError::new(asked, Limit::Buffer { allowed: sizes.limit, held, used }).into());
            }
            drop(state);
            self.give_back_all();
        }
        unreachable!("the second attempt returns")
    }

    /// Returns what is recorded of the live large block at `address`.
    pub(super) fn large_at(&self, address: NonNull<u8>) -> Option<Large> {
        let Source::Chunks(Chunks { large, .. }) = &self.source else { return None };
        large.get(address)
    }

    /// Frees a large block if it belongs to this buffer; returns whether it does.
    ///
    /// # Safety
    /// As for `Backing::deallocate`.
    pub(super) unsafe fn give_large(&self, address: NonNull<u8>) -> bool {
        let Source::Chunks(Chunks { upstream, large, options, .. }) = &self.source else { return false };
        let Some(noted) = large.leave(address) else { return false };
        // SAFETY: it belongs to the upstream, is no longer listed, and is not in use (`Backing::deallocate`).
        unsafe {
            if options.debug {
                address.write_bytes(FREED, noted.usable);
            }
            upstream.deallocate(address);
        }
        self.off_the_books(noted); // last: until the block is freed, the upstream has no room for another
        true
    }

    /// Stops counting a large block.
    fn off_the_books(&self, large: Large) {
        if !large.released {
            let mut state = self.state.lock();
            state.held -= large.usable;
            state.on_free(large.place, large.usable);
        }
    }

    /// Releases a large block, so that it no longer counts.
    pub(super) fn release_large(&self, address: NonNull<u8>) {
        let Source::Chunks(Chunks { large, .. }) = &self.source else { return };
        if let Some(noted) = large.get(address) {
            large.set(address, Large { released: true, ..noted });
            self.off_the_books(noted);
        }
    }

    /// Resizes a large block in place, if the upstream can and the limit allows it.
    ///
    /// # Safety
    /// As for `Backing::resize_in_place`.
    pub(super) unsafe fn resize_large(&self, address: NonNull<u8>, size: usize) -> bool {
        let Source::Chunks(Chunks { upstream, sizes, large, .. }) = &self.source else { return false };
        let Some(old) = large.get(address) else { return false };
        let more = counted(size.min(isize::MAX as usize)).saturating_sub(old.usable);
        let more = if old.released { 0 } else { more };
        if more > 0 && self.charge(sizes, more, size).is_err() {
            return false;
        }
        // SAFETY: it belongs to the upstream; as for `Backing::resize_in_place`, a live block of this buffer
        // (`serving.rs`).
        let (done, usable) = unsafe {
            let done = upstream.resize_in_place(address, size);
            // Bytes beyond what was charged are not used, because they do not count towards the limit.
            let usable = || upstream.usable_size(address).min(old.usable + more).max(size);
            (done, if done { usable() } else { old.usable })
        };
        if done {
            large.set(address, Large { usable, ..old });
        }
        if !old.released {
            let mut state = self.state.lock();
            state.held = state.held - more - old.usable + usable;
            state.changed(old.place, old.usable, usable);
        }
        done
    }
}
