//! The spaces of a buffer in order of address, and the one that served the last request.

use super::backing::Damage;
use super::space::{Owner, Space, Taken};
use crate::address_map;

struct Entry {
    start: usize,
    end: usize,
    space: Box<Space>,
}

/// See the module.
pub(super) struct Spaces {
    list: Vec<Entry>,
    current: usize,
    /// The space in which a block was last found, as most are found there again.
    found: usize,
}

impl Spaces {
    pub(super) const fn new() -> Self {
        Self { list: Vec::new(), current: 0, found: 0 }
    }

    /// Reserves room for one more; returns whether there is memory for that.
    pub(super) fn make_room(&mut self) -> bool {
        self.list.try_reserve(1).is_ok()
    }

    /// Inserts a space, which serves the next request. Room must have been reserved.
    pub(super) fn insert(&mut self, space: Box<Space>) {
        let (start, end) = (space.start(), space.start() + space.bytes());
        address_map::note_outside_all(start..end);
        let at = self.list.partition_point(|entry| entry.start < start);
        self.list.insert(at, Entry { start, end, space });
        self.current = at;
    }

    /// Removes the space for which `order` is highest, if it is not `None` for all.
    pub(super) fn remove(&mut self, order: impl Fn(&Space) -> Option<usize>) -> Option<Box<Space>> {
        let ranked = self.list.iter().enumerate().filter_map(|(at, entry)| Some((order(&entry.space)?, at)));
        let (_, at) = ranked.max()?;
        if self.current > at || self.current + 1 == self.list.len() {
            self.current = self.current.saturating_sub(1);
        }
        Some(self.list.remove(at).space)
    }

    /// Number of spaces.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// Marks the space that served last as used.
    pub(super) fn touch(&mut self) {
        if let Some(entry) = self.list.get_mut(self.current) {
            entry.space.quiet = 0;
        }
    }

    /// Counts a tick of the background purger.
    pub(super) fn age(&mut self) {
        self.list.iter_mut().for_each(|entry| entry.space.quiet = entry.space.quiet.saturating_add(1));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Space> {
        self.list.iter().map(|entry| &*entry.space)
    }

    /// Returns the damage that debug mode finds in any space.
    pub(super) fn damage(&mut self) -> Option<Damage> {
        self.list.iter_mut().fold(None, |found, entry| found.or(entry.space.damage()))
    }

    /// The space and the granule at which the live block at `address` begins.
    #[inline]
    pub(super) fn find(&mut self, address: usize) -> Option<(&mut Space, u32)> {
        let mut at = self.found;
        if self.list.get(at).is_none_or(|entry| address < entry.start || address >= entry.end) {
            at = self.list.partition_point(|entry| entry.end <= address);
            self.found = at;
        }
        let entry = self.list.get_mut(at).filter(|entry| address >= entry.start)?;
        let block = entry.space.find_block(address)?;
        Some((&mut entry.space, block))
    }

    /// Allocates a block in the space that served last, or in the first one with room.
    #[inline]
    pub(super) fn take(&mut self, need: u32, align: usize, owner: Owner, thoroughly: bool) -> Option<Taken> {
        let taken = self.list.get_mut(self.current)?.space.take(need, align, owner, thoroughly);
        if taken.is_some() { taken } else { self.take_elsewhere(need, align, owner, thoroughly) }
    }

    #[cold]
    fn take_elsewhere(&mut self, need: u32, align: usize, owner: Owner, thoroughly: bool) -> Option<Taken> {
        let current = self.current;
        let mut others = self.list.iter_mut().enumerate().filter(|(at, _)| *at != current);
        let (at, taken) =
            others.find_map(|(at, entry)| Some((at, entry.space.take(need, align, owner, thoroughly)?)))?;
        self.current = at;
        self.touch();
        Some(taken)
    }
}
