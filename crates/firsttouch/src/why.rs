//! Why a block lies where it lies: [`why`] answers for every live block of a pool.

use crate::adaptors::Origin;
use crate::heap;
use crate::heap::segment::RegionKind;

/// Where a block lies, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The requested bytes.
    pub asked: usize,
    /// The address of its span, and the bytes in it: whole units.
    pub span: (usize, usize),
    /// Where the memory came from, and on which pages.
    pub origin: Origin,
    /// Whether it is known to lie on huge pages; of a recycled block that may be unknown.
    pub is_huge: bool,
}

/// Why the live block that begins at `address` lies there; `None` if none of ours does.
pub fn why(address: usize) -> Option<Why> {
    let (span, occupant) = heap::block_at(address)?;
    Some(Why {
        asked: occupant.asked(),
        span: (span.address(), span.bytes()),
        origin: Origin::of(occupant.tag())?,
        is_huge: span.kind() == RegionKind::Huge || occupant.tag() == Origin::Credit as u8,
    })
}
