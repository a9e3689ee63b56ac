//! The two kinds of regions, and how the pages of each are meant to be.

use crate::os;

/// Which region serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Units of a base page.
    Small = 0,
    /// Units of 64 KiB on memory that is advised huge.
    Huge = 1,
}

/// Bytes of a unit in the region for huge pages, as a power of two: fine enough that arrays share huge pages.
const HUGE_UNIT_SHIFT: u32 = 16;
/// Bytes opened at a time where pages are small.
const SMALL_EXTENT: usize = 1 << 20;

/// Bytes of the page that the region for huge pages asks for.
pub(crate) fn huge_page() -> usize {
    os::huge_page_size().unwrap_or(2 << 20).max(1 << HUGE_UNIT_SHIFT)
}

/// How the pages of a region are meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes of a unit, as a power of two.
    pub unit_shift: u32,
    /// Bytes that are opened at a time; a multiple of the unit.
    pub extent: usize,
    /// Bytes of the huge page to ask for; what is given back is a multiple of it. The base page where none is asked.
    pub page: usize,
    /// Whether huge pages are asked for.
    pub huge: bool,
    /// The local node of its memory, on machines with several.
    pub local_node: Option<u8>,
}

impl Shape {
    /// Of a region for base pages.
    pub(crate) fn small(local_node: Option<u8>) -> Self {
        let page = os::page_size();
        Self { unit_shift: page.trailing_zeros(), extent: SMALL_EXTENT.max(page), page, huge: false, local_node }
    }

    /// Of a region for huge pages.
    pub(crate) fn huge(local_node: Option<u8>) -> Self {
        let page = huge_page();
        let unit_shift = HUGE_UNIT_SHIFT.max(os::page_size().trailing_zeros());
        Self { unit_shift, extent: page, page, huge: true, local_node }
    }
}
