//! Freed blocks that stay inaccessible for a while, oldest first, and damage that was found. Free allocates nothing: the
//! list has room for every block that lives.

use super::Overrun;
use super::room::Room;
use crate::allocator::{AllocError, Limit};
use std::collections::VecDeque;

/// Damage that is remembered until somebody asks; what is found beyond that is only counted.
const FOUND_MAX: usize = 256;

pub(super) struct Kept {
    queue: VecDeque<Room>,
    /// Bytes of the blocks in the queue, with their guards.
    pub bytes: usize,
    /// Rooms that did not go back to the upstream yet.
    rooms: usize,
    found: Vec<Overrun>,
    /// How often damage was found.
    pub damaged: u64,
}

impl Kept {
    pub(super) fn new() -> Self {
        Self { queue: VecDeque::new(), bytes: 0, rooms: 0, found: Vec::with_capacity(FOUND_MAX), damaged: 0 }
    }

    /// Makes room for one block more.
    pub(super) fn admit(&mut self, asked: usize) -> Result<(), AllocError> {
        let more = self.rooms + 1 - self.queue.len();
        self.queue.try_reserve(more).map_err(|_| AllocError::new(asked, Limit::Upstream))?;
        self.rooms += 1;
        Ok(())
    }

    /// A block went back to the upstream.
    pub(super) fn gone(&mut self) {
        self.rooms -= 1;
    }

    pub(super) fn push(&mut self, room: Room) {
        self.bytes += room.pages().len();
        self.queue.push_back(room);
    }

    /// Calls `each` with every kept block.
    pub(super) fn each(&self, each: impl FnMut(&Room)) {
        self.queue.iter().for_each(each);
    }

    /// The oldest block, while more than `keep` bytes are kept.
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

    /// What was found since this was last asked.
    pub(super) fn take_found(&mut self) -> Vec<Overrun> {
        std::mem::replace(&mut self.found, Vec::with_capacity(FOUND_MAX))
    }
}
