//! Mappings on the pages that are asked for, and on the nodes.

#![allow(unsafe_code)] // Safety: a mapping is made here, and nobody knows it until it is handed out.

use crate::layout::round_up;
use crate::numa::policy::Orders;
use crate::os::{self, Errno};
use crate::pages::page::{Page, page_bytes};
use crate::pages::receipt::Reason;

/// A page size is taken where rounding up wastes no more than this part of the block, or one of the smallest pages.
const WASTE: usize = 8;
const SMALL_WASTE: usize = 2 << 20;

/// How mappings of each kind of pages are made: address and size, or why not.
pub(crate) trait Mapper {
    /// Base pages.
    fn base(&mut self, size: usize, align: usize) -> Result<(usize, usize), Errno>;
    /// Pages that ask for transparent huge ones, whole and aligned to them.
    fn transparent(&mut self, size: usize, align: usize) -> Result<(usize, usize), Reason>;
    /// Explicit huge pages.
    fn explicit(
        &mut self,
        size: usize,
        align: usize,
        page: usize,
        orders: Option<&Orders>,
    ) -> Result<(usize, usize), Reason>;
}

/// Memory of this process alone.
pub(crate) struct Private;

impl Mapper for Private {
    fn base(&mut self, size: usize, align: usize) -> Result<(usize, usize), Errno> {
        map_aligned(size, align)
    }

    fn transparent(&mut self, size: usize, align: usize) -> Result<(usize, usize), Reason> {
        map_transparent(size, align)
    }

    fn explicit(
        &mut self,
        size: usize,
        align: usize,
        page: usize,
        orders: Option<&Orders>,
    ) -> Result<(usize, usize), Reason> {
        map_explicit(size, align, page, orders)
    }
}

/// A mapping at a multiple of `align`.
pub(crate) fn map_aligned(size: usize, align: usize) -> Result<(usize, usize), Errno> {
    let spare = align - os::page_size();
    let at = os::map_anywhere(size.checked_add(spare).ok_or(Errno::NO_MEMORY)?)?;
    let start = at.next_multiple_of(align);
    // SAFETY: the edges were just mapped, and nobody knows them. Where they can't go they stay, unused.
    unsafe {
        if start > at {
            let _ = os::unmap(at, start - at);
        }
        if start < at + spare {
            let _ = os::unmap(start + size, at + spare - start);
        }
    }
    Ok((start, size))
}

/// Whether the system would map so much now.
pub(crate) fn probe(bytes: usize) -> Result<(), Errno> {
    let at = os::map_anywhere(bytes)?;
    // SAFETY: it was mapped on the line above and nobody knows it.
    unsafe { os::unmap(at, bytes) }
}

/// One that asks for transparent huge pages, whole and aligned to them.
pub(crate) fn map_transparent(size: usize, align: usize) -> Result<(usize, usize), Reason> {
    let Some(page) = os::huge_page_size() else { return Err(Reason::Unsupported) };
    if size < page {
        return Err(Reason::Small);
    }
    if !os::transparent_huge_pages() {
        return Err(Reason::Off);
    }
    let mapping = map_aligned(round_up(size, page).ok_or(Reason::Small)?, align.max(page)).map_err(Reason::of)?;
    os::advise_huge(mapping.0, mapping.1).map_err(|error| {
        // SAFETY: it was just mapped, and nobody knows it.
        let _ = unsafe { os::unmap(mapping.0, mapping.1) };
        Reason::of(error)
    })?;
    Ok(mapping)
}

/// Bytes of explicit huge pages around a block, where they suit it.
pub(crate) fn whole_pages(size: usize, align: usize, page: usize) -> Result<usize, Reason> {
    if size < page {
        return Err(Reason::Small);
    }
    let whole = round_up(size, page).ok_or(Reason::Small)?;
    if whole - size > (size / WASTE).max(SMALL_WASTE) {
        return Err(Reason::Waste);
    }
    if align > page { Err(Reason::Alignment) } else { Ok(whole) }
}

/// One of explicit huge pages.
pub(crate) fn map_explicit(
    size: usize,
    align: usize,
    page: usize,
    orders: Option<&Orders>,
) -> Result<(usize, usize), Reason> {
    let whole = whole_pages(size, align, page)?;
    let at = os::map_huge(whole, page).map_err(|e| if e == Errno::NO_MEMORY { Reason::Pool } else { Reason::of(e) })?;
    settle((at, whole), page, orders)
}

/// Binds explicit huge pages that were just mapped.
pub(crate) fn settle(
    (at, whole): (usize, usize),
    page: usize,
    orders: Option<&Orders>,
) -> Result<(usize, usize), Reason> {
    // The pool's promise is the machine's, not the node's: a page that a node lacks would be a SIGBUS at its first
    // touch. So these are bound and made real here.
    let real = orders.is_none_or(|orders| {
        bind((at, whole), orders, Page::Explicit(page)).is_ok() && os::populate(at, whole, true).is_ok()
    });
    if !real {
        // SAFETY: it was just mapped, and nobody knows it.
        let _ = unsafe { os::unmap(at, whole) };
        return Err(Reason::Node);
    }
    Ok((at, whole))
}

/// The most slabs of one block that the kernel is told of: it keeps a record of each, 65,530 for the whole process.
const MOST_SLABS: usize = 4096;

/// Tells the kernel where the pages of a mapping are to come from. False where there are too many slabs for it: their
/// pages come from any of the nodes.
pub(crate) fn bind((address, size): (usize, usize), orders: &Orders, page: Page) -> Result<bool, Errno> {
    let edge = match page {
        Page::Transparent => os::huge_page_size().unwrap_or(os::page_size()),
        page => page_bytes(page),
    };
    let slabs = orders.ranges(size, edge);
    if slabs.len() > MOST_SLABS {
        return os::bind(address, size, orders.mode, &orders.nodes, false).map(|()| false);
    }
    for (from, len, nodes) in slabs {
        os::bind(address + from, len, orders.mode, &nodes, false)?;
    }
    Ok(true)
}
