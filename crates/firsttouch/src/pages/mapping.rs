//! Page sizes and their names; mappings on the requested kind of pages, and on nodes.

#![allow(unsafe_code)] // Safety: a mapping is created here and not in use until it is returned.

use crate::description::Value;
use crate::expression::did_you_mean;
use crate::layout::round_up;
use crate::numa::policy::Orders;
use crate::os::{self, Errno};
use crate::pages::receipt::Reason;
use crate::size;
use crate::sync::first::First;
use std::fmt;

/// The kind of a block's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Pages of the smallest size.
    Base,
    /// Transparent huge pages, which the kernel grants page by page.
    Transparent,
    /// Explicit huge pages of this size in bytes, from the kernel's pool.
    Explicit(usize),
}

/// The sizes of explicit huge pages of the machine, largest first. They stay as they are, so they are read once: later
/// there may be no memory or no file descriptor to read them. A front asks for them when it is loaded.
pub fn explicit_page_sizes() -> &'static [usize] {
    static SIZES: First<Vec<usize>> = First::new();
    match SIZES.get() {
        Some(sizes) => sizes,
        None => os::explicit_huge_pages().map_or(&[], |sizes| SIZES.get_or_make(|| sizes)),
    }
}

impl Page {
    /// Parses a page size: `thp`, or one of the machine's, like `2M` or `1G`. Page sizes are powers of two, so `2MB` is
    /// the same.
    ///
    /// # Errors
    /// A message that lists the sizes of the machine.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "thp" {
            return Ok(Self::Transparent);
        }
        let there = explicit_page_sizes();
        match size::parse(text.strip_suffix(['b', 'B']).unwrap_or(text)).or_else(|_| size::parse(text)) {
            Ok(size) if there.contains(&size) => Ok(Self::Explicit(size)),
            _ => {
                let names: Vec<String> = there.iter().rev().map(|&size| Self::Explicit(size).to_string()).collect();
                let has = if names.is_empty() { "no explicit huge pages".into() } else { names.join(" and ") };
                let near = did_you_mean(text, ["thp"]);
                Err(format!("{text:?} is not a page size of this machine, which has {has}{near}"))
            }
        }
    }
}

impl Page {
    /// The page size as an argument of `pages`.
    pub fn value(&self) -> Value {
        match *self {
            Self::Base => Value::Flag(false),
            Self::Transparent => Value::from("thp"),
            Self::Explicit(size) if size % (1 << 30) == 0 => Value::from(format!("{}G", size >> 30)),
            Self::Explicit(size) if size % (1 << 20) == 0 => Value::from(format!("{}M", size >> 20)),
            Self::Explicit(size) => Value::from(format!("{}K", size >> 10)),
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

/// The size of a page in bytes.
pub fn page_bytes(page: Page) -> usize {
    match page {
        Page::Base | Page::Transparent => os::page_size(), // the kernel may have granted only small ones
        Page::Explicit(bytes) => bytes,
    }
}

/// A page size is used if rounding up wastes at most this fraction of the block, or one page of the smallest size.
const WASTE: usize = 8;
const SMALL_WASTE: usize = 2 << 20;

/// Checks whether the system would map so many bytes now.
pub(crate) fn probe(bytes: usize) -> Result<(), Errno> {
    let at = os::map_anywhere(bytes)?;
    // SAFETY: it was just mapped and is not in use.
    unsafe { os::unmap(at, bytes) }
}

/// Creates a mapping advised as transparent huge pages, aligned to whole huge pages.
pub(crate) fn map_transparent(size: usize, align: usize) -> Result<(usize, usize), Reason> {
    let page = os::huge_page_size().ok_or(Reason::Unsupported)?;
    if size < page {
        return Err(Reason::Small);
    }
    if !os::transparent_huge_pages() {
        return Err(Reason::Off);
    }
    let whole = round_up(size, page).ok_or(Reason::Small)?;
    let address = os::map_aligned(whole, align.max(page), None).map_err(Reason::of)?;
    os::advise_huge(address, whole).map_err(|error| {
        // SAFETY: it was just mapped and is not in use.
        let _ = unsafe { os::unmap(address, whole) };
        Reason::of(error)
    })?;
    Ok((address, whole))
}

/// Creates a mapping of explicit huge pages of `page` bytes, if they suit the block.
pub(crate) fn map_explicit(
    size: usize,
    align: usize,
    page: usize,
    orders: Option<&Orders>,
) -> Result<(usize, usize), Reason> {
    if size < page {
        return Err(Reason::Small);
    }
    let whole = round_up(size, page).ok_or(Reason::Small)?;
    if whole - size > (size / WASTE).max(SMALL_WASTE) {
        return Err(Reason::Waste);
    }
    if align > page {
        return Err(Reason::Alignment);
    }
    let pool = |error| if error == Errno::NO_MEMORY { Reason::Pool } else { Reason::of(error) };
    let address = os::map_huge(whole, page, orders.and_then(Orders::one_node)).map_err(pool)?;
    // The kernel's pool guarantees pages of the machine, not of a node: a page that a node lacks would be a SIGBUS at
    // its first touch. So bound pages are faulted in here. Where a node can only be given when mapping, they are there.
    let real = orders.is_none_or(|orders| match bind((address, whole), orders) {
        Err(Errno::UNSUPPORTED) => true,
        bound => bound.is_ok() && os::populate(address, whole, true).is_ok(),
    });
    if !real {
        // SAFETY: it was just mapped and is not in use.
        let _ = unsafe { os::unmap(address, whole) };
        return Err(Reason::Node);
    }
    Ok((address, whole))
}

/// Binds the pages of a mapping to their nodes.
pub(crate) fn bind((address, size): (usize, usize), orders: &Orders) -> Result<(), Errno> {
    os::bind(address, size, orders.mode, &orders.nodes)
}
