//! Why a block lies where it lies: [`why`] answers for every live block of a pool.

use crate::adaptors::Origin;
use crate::address_map;
use crate::heap;
use crate::size::Bytes;
use std::fmt;

/// Where a block lies, and what decided that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The bytes that were asked for.
    pub asked: usize,
    /// The bytes that may be used.
    pub usable: usize,
    /// The first byte of its span, and the bytes of that, which are whole units.
    pub span: (usize, usize),
    /// The bytes of a unit.
    pub unit: usize,
    /// The first byte of the segment that the span was cut from.
    pub segment: usize,
    /// Where the memory came from, and on which pages.
    pub origin: Origin,
    /// The expression of the allocator that owns it; `None` if that is gone.
    pub owner: Option<String>,
}

/// Why the live block that begins at `address` lies there; `None` if none of ours does.
pub fn why(address: usize) -> Option<Why> {
    let span = heap::span_at(address).filter(|_| heap::lives(address))?;
    let (segment, occupant) = (span.segment, span.segment.occupant(span.start));
    Some(Why {
        asked: occupant.asked(),
        usable: span.usable(),
        span: (span.address(), span.bytes()),
        unit: segment.unit(),
        segment: segment.base(),
        origin: Origin::of(occupant.note())?,
        owner: address_map::owner(address).map(|owner| owner.expression()),
    })
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, usable, span, unit, segment, origin, owner } = self;
        write!(f, "{} asked for, {} usable: {origin}. ", Bytes(*asked), Bytes(*usable))?;
        write!(f, "The span of {} at {:#x} is cut in units of {}", Bytes(span.1), span.0, Bytes(*unit))?;
        write!(f, " from the segment at {segment:#x}, which belongs to ")?;
        f.write_str(owner.as_deref().unwrap_or("an allocator that is gone"))
    }
}
