//! Why a block lies where it lies: [`why`] answers for every live block of a pool.

use crate::adaptors::Origin;
use crate::address_map;
use crate::heap;

/// Where a block lies, and what decided that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The bytes that were asked for.
    pub asked: usize,
    /// The first byte of its span, and the bytes of that, which are whole units.
    pub span: (usize, usize),
    /// Where the memory came from, and on which pages.
    pub origin: Origin,
    /// The expression of the allocator that owns it; `None` if that is gone.
    pub owner: Option<String>,
}

/// Why the live block that begins at `address` lies there; `None` if none of ours does.
pub fn why(address: usize) -> Option<Why> {
    let (span, occupant) = heap::block_at(address)?;
    Some(Why {
        asked: occupant.asked(),
        span: (span.address(), span.bytes()),
        origin: Origin::of(occupant.tag())?,
        owner: address_map::owner(address).map(|owner| owner.expression()),
    })
}
