//! What a buffer holds and counts, under one lock.

use super::super::backing::{Damage, Slot, Survivor};
use super::super::slots::Slots;
use super::super::space::{Owner, Taken};
use super::super::spaces::Spaces;
use crate::allocator::Request;

/// A request of a scope.
#[derive(Clone, Copy)]
pub(super) struct BlockRequest {
    pub slot: Slot,
    pub request: Request,
    /// The size in granules.
    pub need: u32,
    pub site: u64,
}

pub(super) struct State {
    pub spaces: Spaces,
    pub slots: Slots,
    /// Bytes of live blocks, and of those in spaces.
    pub used: usize,
    pub bumped: usize,
    /// Number of live blocks.
    pub blocks: usize,
    pub peak: usize,
    /// Bytes held, and of those in spaces.
    pub held: usize,
    pub chunks: usize,
    /// Whether this is a forked child and the storage belongs to its parent.
    pub closed: bool,
    /// The damage that debug mode found and that was not reported yet.
    pub damage: Option<Damage>,
}

impl State {
    pub(super) const fn new() -> Self {
        Self {
            spaces: Spaces::new(),
            slots: Slots::new(),
            used: 0,
            bumped: 0,
            blocks: 0,
            peak: 0,
            held: 0,
            chunks: 0,
            closed: false,
            damage: None,
        }
    }

    /// The index that the blocks of a scope are counted at.
    #[inline]
    pub(super) fn place(&self, slot: Slot) -> u32 {
        if slot == Slot::OUTSIDE { 0 } else { self.slots.index(slot).unwrap_or(0) }
    }

    /// Allocates a block in a space, if there is room.
    #[inline]
    pub(super) fn take(&mut self, slot: Slot, need: u32, align: usize, site: u64) -> Option<Taken> {
        self.take_one(slot, need, align, site, false)
    }

    /// As [`take`](Self::take), for the whole request. With `thoroughly`, every hole is tried.
    pub(super) fn serve(&mut self, asked: BlockRequest, thoroughly: bool) -> Option<Taken> {
        self.take_one(asked.slot, asked.need, asked.request.align(), asked.site, thoroughly)
    }

    #[inline]
    fn take_one(&mut self, slot: Slot, need: u32, align: usize, site: u64, thoroughly: bool) -> Option<Taken> {
        if self.closed {
            return None;
        }
        let owner = Owner { slot: self.place(slot), site };
        let taken = self.spaces.take(need, align, owner, thoroughly)?;
        self.bumped += taken.size;
        self.on_alloc(owner.slot, taken.size);
        Some(taken)
    }

    /// Frees the block at `address`, if one begins there.
    #[inline]
    pub(super) fn give(&mut self, address: usize) -> bool {
        let Some((space, at)) = self.spaces.find(address) else { return false };
        let (size, owner) = space.give(at);
        self.bumped -= size;
        self.on_free(owner.slot, size);
        true
    }

    /// Returns the damage found in debug mode, checking all spaces if there is none so far.
    pub(super) fn find_damage(&mut self) -> Option<Damage> {
        if self.closed { None } else { self.damage.take().or(self.spaces.damage()) }
    }

    /// Counts a new block of a scope.
    #[inline]
    pub(super) fn on_alloc(&mut self, place: u32, size: usize) {
        self.slots.on_alloc(place, size);
        self.blocks += 1;
        self.used += size;
        self.peak = self.peak.max(self.used);
    }

    /// Counts the free of a block of a scope.
    #[inline]
    pub(super) fn on_free(&mut self, place: u32, size: usize) {
        self.slots.on_free(place, size);
        self.blocks -= 1;
        self.used -= size;
    }

    /// Counts a change of the size of a scope's block.
    pub(super) fn changed(&mut self, place: u32, old: usize, new: usize) {
        self.slots.changed(place, old, new);
        self.used = self.used - old + new;
        self.peak = self.peak.max(self.used);
    }

    /// Resizes the block at `address` in place, if possible; `None` if it does not lie in a space.
    pub(super) fn resize(&mut self, address: usize, need: Option<u32>) -> Option<bool> {
        let (space, at) = self.spaces.find(address)?;
        let (old, owner) = space.block(at);
        if !need.is_some_and(|need| space.resize(at, need)) {
            return Some(false);
        }
        let (new, _) = space.block(at);
        self.bumped = self.bumped - old + new;
        self.changed(owner.slot, old, new);
        Some(true)
    }

    /// Appends the live blocks of a scope that lie in spaces.
    pub(super) fn survivors(&self, slot: Slot, list: &mut Vec<Survivor>) {
        let Some(place) = self.slots.index(slot) else { return };
        let (blocks, _) = self.slots.count(slot);
        for space in self.spaces.iter().filter(|space| space.blocks > 0) {
            space.walk(|address, size, owner| {
                if owner.slot == place {
                    Survivor { address, size, site: owner.site }.join(list);
                }
                list.len() < blocks
            });
        }
    }
}
