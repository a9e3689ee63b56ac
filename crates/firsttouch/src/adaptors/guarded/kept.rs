//! The queue of freed blocks that stay inaccessible, oldest first, and the damage found. A free allocates nothing,
//! because the queue has room for every live block.

use super::Overrun;
use super::room::Room;
use crate::allocator::{AllocError, Limit};
use std::collections::VecDeque;

/// The most overruns that are kept until they are queried; further ones are only counted.
const FOUND_MAX: usize = 256;

pub(super) struct Kept {
    queue: VecDeque<Room>,
    /// Bytes of the blocks in the queue, guards included.
    pub bytes: usize,
    /// The number of rooms that were not returned to the upstream yet.
    rooms: usize,
    found: Vec<Overrun>,
    /// How often damage was found.
    pub damaged: u64,
}

impl Kept {
    pub(super) fn new() -> Self {
        Self { queue: VecDeque::new(), bytes: 0, rooms: 0, found: Vec::with_capacity(FOUND_MAX), damaged: 0 }
    }

    /// Reserves room for another block.
    pub(super) fn admit(&mut self, asked: usize) -> Result<(), AllocError> {
        let more = self.rooms + 1 - self.queue.len();
        self.queue.try_reserve(more).map_err(|_| AllocError::new(asked, Limit::Upstream))?;
        self.rooms += 1;
        Ok(())
    }

    /// A block was returned to the upstream.
    pub(super) fn gone(&mut self) {
        self.rooms -= 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn push(&mut self, room: Room) {
        self.bytes += room.pages().len();
        self.queue.push_back(room);
    }

    /// Calls `each` with every kept block.
    pub(super) fn each(&self, each: impl FnMut(&Room)) {
        self.queue.iter().for_each(each);
    }

    /// Removes and returns the oldest block, if more than `keep` bytes are kept.
    pub(super) fn pop(&mut self, keep: usize) -> Option<Room> {
        let room = if self.bytes > keep { self.queue.pop_front() } else { None }?;
        self.bytes -= room.pages().len();
        Some(room)
    }

    pub(super) fn found(&mut self, overrun: Overrun) {
        self.damaged += 1;
        if self.found.len() < FOUND_MAX {
            self.found.push(overrun);
        }
    }

    /// Returns what was found since the last call.
    pub(super) fn take_found(&mut self) -> Vec<Overrun> {
        std::mem::replace(&mut self.found, Vec::with_capacity(FOUND_MAX))
    }
}
