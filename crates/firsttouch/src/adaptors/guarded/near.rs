//! Which block lies next to an address: for whoever has to say what a memory fault was.

use super::Guarded;
use super::room::Room;

/// A block, and whether it was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near {
    /// Where it begins.
    pub address: usize,
    /// Bytes that were asked for.
    pub asked: usize,
    /// Whether it was freed and is kept.
    pub freed: bool,
}

fn distance(address: usize, room: &Room) -> usize {
    let end = room.address + room.asked;
    if address < room.address { room.address - address } else { (address + 1).saturating_sub(end) }
}

impl Guarded {
    /// The block nearest to `address`, unless it is farther away than its guard reaches. Two blocks may share a guard's
    /// neighbourhood; the nearer one is the likelier. Allocates nothing: the handler of a memory fault may ask.
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
