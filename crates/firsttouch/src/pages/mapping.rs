//! Mappings on the requested kind of pages, and on nodes.

#![allow(unsafe_code)] // Safety: a mapping is created here and not in use until it is returned.

use crate::layout::round_up;
use crate::numa::policy::Orders;
use crate::os::{self, Errno};
use crate::pages::page::{Page, page_bytes};
use crate::pages::receipt::Reason;

/// A page size is used if rounding up wastes at most this fraction of the block, or one page of the smallest size.
const WASTE: usize = 8;
const SMALL_WASTE: usize = 2 << 20;

/// Creates mappings of each kind of pages; returns address and size, or the reason of a failure.
pub(crate) trait Mapper {
    /// Base pages.
    fn base(&mut self, size: usize, align: usize) -> Result<(usize, usize), Errno>;
    /// Base pages advised as transparent huge pages, aligned to whole huge pages.
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

/// Private memory of this process.
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

/// Creates a mapping at a multiple of `align`.
pub(crate) fn map_aligned(size: usize, align: usize) -> Result<(usize, usize), Errno> {
    let spare = align - os::page_size();
    let at = os::map_anywhere(size.checked_add(spare).ok_or(Errno::NO_MEMORY)?)?;
    let start = at.next_multiple_of(align);
    // SAFETY: the edges were just mapped and are not in use. If they cannot be unmapped, they stay unused.
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

/// Checks whether the system would map so many bytes now.
pub(crate) fn probe(bytes: usize) -> Result<(), Errno> {
    let at = os::map_anywhere(bytes)?;
    // SAFETY: it was just mapped and is not in use.
    unsafe { os::unmap(at, bytes) }
}

/// Creates a mapping advised as transparent huge pages, aligned to whole huge pages.
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
        // SAFETY: it was just mapped and is not in use.
        let _ = unsafe { os::unmap(mapping.0, mapping.1) };
        Reason::of(error)
    })?;
    Ok(mapping)
}

/// The size of a block in whole explicit huge pages, if they suit it.
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

/// Creates a mapping of explicit huge pages.
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
    // The kernel's pool guarantees pages of the machine, not of a node: a page that a node lacks would be a SIGBUS at
    // its first touch. So bound pages are faulted in here.
    let real = orders.is_none_or(|orders| {
        bind((at, whole), orders, Page::Explicit(page)).is_ok() && os::populate(at, whole, true).is_ok()
    });
    if !real {
        // SAFETY: it was just mapped and is not in use.
        let _ = unsafe { os::unmap(at, whole) };
        return Err(Reason::Node);
    }
    Ok((at, whole))
}

/// The most slabs of a block that are passed to the kernel, which makes each a mapping; a process may have 65,530.
const MOST_SLABS: usize = 4096;

/// Binds the pages of a mapping to their nodes. Returns false if there are too many slabs; their pages then come from
/// any of the nodes.
pub(crate) fn bind((address, size): (usize, usize), orders: &Orders, page: Page) -> Result<bool, Errno> {
    let edge = match page {
        Page::Transparent => os::huge_page_size().unwrap_or(os::page_size()),
        page => page_bytes(page),
    };
    if orders.ranges(size, edge).nth(MOST_SLABS).is_some() {
        return os::bind(address, size, orders.mode, &orders.nodes, false).map(|()| false);
    }
    for (from, len, nodes) in orders.ranges(size, edge) {
        os::bind(address + from, len, orders.mode, &nodes, false)?;
    }
    Ok(true)
}
