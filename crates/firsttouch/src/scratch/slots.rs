//! The scopes of a buffer: which are open, and how many live blocks each has.

use super::backing::Slot;

/// A slot holds its index in the lower bits and, above, how often the index was used, so that a stale slot matches no
/// scope.
const PLACE_BITS: u32 = 24;
const PLACES: usize = 1 << PLACE_BITS;
const NONE: u32 = u32::MAX;

struct Place {
    turn: u8,
    open: bool,
    blocks: usize,
    bytes: usize,
    /// The index of the next vacant entry.
    next: u32,
}

impl Place {
    const fn new() -> Self {
        Self { turn: 0, open: true, blocks: 0, bytes: 0, next: NONE }
    }
}

/// See the module. The first entry counts blocks outside all scopes. Entries that are neither open nor have live
/// blocks are vacant and form a chain, so that a free allocates nothing (law 5).
pub(super) struct Slots {
    places: Vec<Place>,
    vacant: u32,
    /// The number of open scopes.
    pub depth: usize,
    outside: Place,
}

impl Slots {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), vacant: NONE, depth: 0, outside: Place::new() }
    }

    /// Begins a scope. If there is no memory for another entry, its blocks count as outside.
    pub(super) fn open(&mut self) -> Slot {
        let index = self.vacant;
        if index != NONE {
            let place = &mut self.places[index as usize - 1];
            self.vacant = place.next;
            *place = Place { turn: place.turn.wrapping_add(1), ..Place::new() };
        } else if self.places.len() + 1 >= PLACES || self.places.try_reserve(1).is_err() {
            return Slot::OUTSIDE;
        } else {
            self.places.push(Place::new());
        }
        self.depth += 1;
        let index = if index == NONE { self.places.len() as u32 } else { index };
        Slot(index | u32::from(self.places[index as usize - 1].turn) << PLACE_BITS)
    }

    /// The index of a slot, as long as that belongs to the scope.
    pub(super) fn index(&self, slot: Slot) -> Option<u32> {
        let index = slot.0 % PLACES as u32;
        if index == 0 {
            return Some(0);
        }
        let place = self.places.get(index as usize - 1)?;
        let its = u32::from(place.turn) == slot.0 >> PLACE_BITS && (place.open || place.blocks > 0);
        its.then_some(index)
    }

    /// Ends a scope; returns whether it was open.
    pub(super) fn close(&mut self, slot: Slot) -> bool {
        let Some(index @ 1..) = self.index(slot) else { return false };
        let place = &mut self.places[index as usize - 1];
        if !std::mem::replace(&mut place.open, false) {
            return false;
        }
        self.depth -= 1;
        self.vacate_if_done(index);
        true
    }

    /// The number of live blocks of a scope, and their bytes.
    pub(super) fn count(&self, slot: Slot) -> (usize, usize) {
        let place = self.index(slot).map(|index| self.place(index));
        place.map_or((0, 0), |place| (place.blocks, place.bytes))
    }

    fn place(&self, index: u32) -> &Place {
        if index == 0 { &self.outside } else { &self.places[index as usize - 1] }
    }

    #[inline]
    fn place_mut(&mut self, index: u32) -> &mut Place {
        if index == 0 { &mut self.outside } else { &mut self.places[index as usize - 1] }
    }

    /// Counts a new block.
    #[inline]
    pub(super) fn on_alloc(&mut self, index: u32, bytes: usize) {
        let place = self.place_mut(index);
        place.blocks += 1;
        place.bytes += bytes;
    }

    /// Counts the free of a block.
    #[inline]
    pub(super) fn on_free(&mut self, index: u32, bytes: usize) {
        let place = self.place_mut(index);
        place.blocks -= 1;
        place.bytes -= bytes;
        if !place.open && place.blocks == 0 {
            self.vacate_if_done(index);
        }
    }

    /// Counts a change of a block's size.
    pub(super) fn changed(&mut self, index: u32, old: usize, new: usize) {
        let place = self.place_mut(index);
        place.bytes = place.bytes - old + new;
    }

    fn vacate_if_done(&mut self, index: u32) {
        let vacant = self.vacant;
        let place = self.place_mut(index);
        if !place.open && place.blocks == 0 {
            place.next = vacant;
            self.vacant = index;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_vacant_once_its_scope_ended_and_its_blocks_died() {
        let mut slots = Slots::new();
        let (first, second) = (slots.open(), slots.open());
        let index = |slot| slots.index(slot).unwrap();
        let (one, two) = (index(first), index(second));
        slots.on_alloc(one, 100);
        slots.on_alloc(two, 50);
        slots.changed(two, 50, 70);
        assert_eq!((slots.count(first), slots.count(second), slots.depth), ((1, 100), (1, 70), 2));
        assert!(slots.close(first) && !slots.close(first) && !slots.close(Slot::OUTSIDE));
        let third = slots.open();
        assert!(slots.index(third) != Some(one) && slots.index(first) == Some(one));
        slots.on_free(one, 100);
        assert_eq!(slots.index(first), None);
        let fourth = slots.open();
        assert!(slots.index(fourth) == Some(one) && fourth != first, "the index is the same, the slot is not");
        assert!(!slots.close(first) && slots.close(fourth));
        slots.on_free(two, 70);
        assert!(slots.close(second) && slots.close(third));
        assert_eq!(slots.depth, 0);
    }

    #[test]
    fn numbers_come_back_only_after_many_turns() {
        let mut slots = Slots::new();
        let numbers: Vec<_> = (0..256)
            .map(|_| {
                let slot = slots.open();
                assert!(slots.close(slot));
                slot.0
            })
            .collect();
        assert!(numbers.iter().enumerate().all(|(at, number)| !numbers[..at].contains(number)));
    }
}
