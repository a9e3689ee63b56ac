//! Finds the block next to an address, to explain a memory fault.

use super::Guarded;
use super::room::Room;

/// A block, and whether it was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near {
    /// Its address.
    pub address: usize,
    /// The requested size in bytes.
    pub asked: usize,
    /// Whether it was freed and is kept inaccessible.
    pub freed: bool,
}

fn distance(address: usize, room: &Room) -> usize {
    let end = room.address + room.asked;
    if address < room.address { room.address - address } else { (address + 1).saturating_sub(end) }
}

impl Guarded {
    /// Returns the block nearest to `address`, unless `address` is out of reach of its guard. If two blocks border on
    /// the same guard, the nearer one is the more likely. Allocates nothing, so that the handler of a memory fault may
    /// call it.
    pub fn near(&self, address: usize) -> Option<Near> {
        let mut nearest: Option<(usize, Near)> = None;
        let mut look = |room: &Room, freed| {
            let away = distance(address, room);
            if away <= room.guard_size && nearest.is_none_or(|(least, _)| away < least) {
                nearest = Some((away, Near { address: room.address, asked: room.asked, freed }));
            }
        };
        self.ledger.each(|_, room| look(&room, false));
        self.kept.lock().each(|room| look(room, true));
        nearest.map(|(_, near)| near)
    }
}
