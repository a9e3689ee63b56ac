//! What a buffer holds and counts, under one lock.

use super::super::backing::{Damage, Slot, Survivor};
use super::super::slots::Slots;
use super::super::space::{Owner, Taken};
use super::super::spaces::Spaces;
use crate::allocator::Request;

/// A request that a scope makes.
#[derive(Clone, Copy)]
pub(super) struct BlockRequest {
    pub slot: Slot,
    pub request: Request,
    /// Granules.
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
    /// Whether this is a forked child, and the storage its parent's.
    pub closed: bool,
    /// What debug mode found and nobody was told yet.
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

    /// The place that a scope's blocks are counted at.
    #[inline]
    pub(super) fn place(&self, slot: Slot) -> u32 {
        if slot == Slot::OUTSIDE { 0 } else { self.slots.index(slot).unwrap_or(0) }
    }

    /// Takes a block from a space, if there is room.
    #[inline]
    pub(super) fn take(&mut self, slot: Slot, need: u32, align: usize, site: u64) -> Option<Taken> {
        self.take_one(slot, need, align, site, false)
    }

    /// The same for a request as a whole. `thoroughly`: every hole is looked at.
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

    /// Takes the block at `address` back, if one begins there.
    #[inline]
    pub(super) fn give(&mut self, address: usize) -> bool {
        let Some((space, at)) = self.spaces.find(address) else { return false };
        let (size, owner) = space.give(at);
        self.bumped -= size;
        self.on_free(owner.slot, size);
        true
    }

    /// What debug mode found, or finds now.
    pub(super) fn find_damage(&mut self) -> Option<Damage> {
        if self.closed { None } else { self.damage.take().or(self.spaces.damage()) }
    }

    /// A block came to a scope's place.
    #[inline]
    pub(super) fn on_alloc(&mut self, place: u32, size: usize) {
        self.slots.on_alloc(place, size);
        self.blocks += 1;
        self.used += size;
        self.peak = self.peak.max(self.used);
    }

    /// A block of a scope's place is gone.
    #[inline]
    pub(super) fn on_free(&mut self, place: u32, size: usize) {
        self.slots.on_free(place, size);
        self.blocks -= 1;
        self.used -= size;
    }

    /// A block of a scope's place has another size.
    pub(super) fn changed(&mut self, place: u32, old: usize, new: usize) {
        self.slots.changed(place, old, new);
        self.used = self.used - old + new;
        self.peak = self.peak.max(self.used);
    }

    /// Changes the size of the block at `address`, if it lies in a space and can stay; nothing where it does not.
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

    /// Adds the live blocks of a scope that lie in spaces.
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
