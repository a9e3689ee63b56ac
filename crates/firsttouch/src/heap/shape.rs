//! The two kinds of regions, and the pages of each.

use crate::os;

/// Which region serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Units of a base page.
    Small = 0,
    /// Units of 64 KiB on memory that is advised huge.
    Huge = 1,
}

impl Kind {
    /// The pages of the region, unless it is said otherwise.
    pub(crate) fn pages(self) -> Fresh {
        match self {
            Self::Small => Fresh::Base,
            Self::Huge => Fresh::Huge,
        }
    }

    /// The page size of the region.
    pub(crate) fn page(self) -> usize {
        match self {
            Self::Small => os::page_size(),
            Self::Huge => huge_page(),
        }
    }

    /// Bytes of a unit of the region.
    pub(crate) fn unit(self) -> usize {
        match self {
            Self::Small => os::page_size(),
            Self::Huge => os::page_size().max(1 << HUGE_UNIT_SHIFT),
        }
    }
}

/// On which pages memory comes that is not mapped yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// Base pages.
    Base,
    /// Huge pages, in whole ones.
    Huge,
    /// Huge pages where they lie in the block as a whole, except at its start: as with NumPy's own arrays, who touches only
    /// the first bytes or the last ones gets base pages.
    Inner,
}

/// The size of a unit in the region for huge pages, as a power of two: small enough that arrays share huge pages.
const HUGE_UNIT_SHIFT: u32 = 16;
/// Bytes mapped at a time in the region for base pages.
const SMALL_EXTENT: usize = 1 << 20;

/// The page size of the region for huge pages.
pub(crate) fn huge_page() -> usize {
    os::huge_page_size().unwrap_or(2 << 20).max(1 << HUGE_UNIT_SHIFT)
}

/// The pages of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The size of a unit in bytes, as a power of two.
    pub unit_shift: u32,
    /// Bytes that are mapped at a time; a multiple of the unit.
    pub extent: usize,
    /// The page size in bytes. What is purged is a multiple of it.
    pub page: usize,
    /// Whether the memory is advised huge.
    pub huge: bool,
    /// The local node of its memory, on machines with several nodes.
    pub local_node: Option<u8>,
}

impl Shape {
    /// The shape of a region for base pages.
    pub(crate) fn small(local_node: Option<u8>) -> Self {
        let page = os::page_size();
        Self {
            unit_shift: Kind::Small.unit().trailing_zeros(),
            extent: SMALL_EXTENT.max(page),
            page,
            huge: false,
            local_node,
        }
    }

    /// The shape of a region for huge pages.
    pub(crate) fn huge(local_node: Option<u8>) -> Self {
        let page = huge_page();
        Self { unit_shift: Kind::Huge.unit().trailing_zeros(), extent: page, page, huge: true, local_node }
    }
}
