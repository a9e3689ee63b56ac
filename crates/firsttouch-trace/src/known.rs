//! Which block lies at an address: open addressing with backward shifts (Knuth, TAOCP 3, 6.4, algorithm R).

use super::grown::Grown;

/// A living block. An address of zero is an empty place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Living {
    pub(super) address: usize,
    pub(super) size: u64,
    pub(super) block: u32,
    /// Whether it was to read zero.
    pub(super) zeroed: bool,
}

const FIRST: usize = 1024;

/// See the module.
pub(super) struct Known {
    table: Grown<Living>,
    count: usize,
}

fn place(address: usize, places: usize) -> usize {
    let spread = (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (spread >> 32) as usize & (places - 1)
}

impl Known {
    pub(super) fn new() -> Option<Self> {
        Some(Self { table: Grown::zeros(FIRST)?, count: 0 })
    }

    /// Enters a block; false where there is no memory for that. The block that was there, if any, is gone.
    pub(super) fn enter(&mut self, living: Living) -> bool {
        let places = self.table.items().len();
        if self.count * 2 >= places && !self.grow(places * 2) {
            return false;
        }
        self.put(living);
        true
    }

    fn put(&mut self, living: Living) {
        let table = self.table.items();
        let mut at = place(living.address, table.len());
        while table[at].address != 0 && table[at].address != living.address {
            at = (at + 1) & (table.len() - 1);
        }
        self.count += usize::from(table[at].address == 0);
        table[at] = living;
    }

    fn grow(&mut self, places: usize) -> bool {
        let Some(table) = Grown::zeros(places) else { return false };
        let mut old = std::mem::replace(&mut self.table, table);
        self.count = 0;
        old.items().iter().filter(|living| living.address != 0).for_each(|living| self.put(*living));
        true
    }

    /// Takes a block off; nothing where none is known.
    pub(super) fn leave(&mut self, address: usize) -> Option<Living> {
        let table = self.table.items();
        let mask = table.len() - 1;
        let mut at = place(address, table.len());
        while table[at].address != address {
            if table[at].address == 0 {
                return None;
            }
            at = (at + 1) & mask;
        }
        let found = table[at];
        let mut next = (at + 1) & mask;
        while table[next].address != 0 {
            let home = place(table[next].address, table.len());
            // It may move back unless its home lies behind the hole.
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(at) & mask {
                table[at] = table[next];
                at = next;
            }
            next = (next + 1) & mask;
        }
        table[at].address = 0;
        self.count -= 1;
        Some(found)
    }

    /// All there are, in no order.
    pub(super) fn living(&mut self) -> impl Iterator<Item = Living> {
        self.table.items().iter().copied().filter(|living| living.address != 0)
    }
}
