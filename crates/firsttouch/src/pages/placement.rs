//! Placement: the page size, NUMA policy, prefault and lock of one mapping, and the receipt of what was granted.

#![allow(unsafe_code)] // Safety: a mapping is created here and not in use until it is returned.

use crate::description::{Description, Value, separated};
use crate::error::{AllocError, Limit};
use crate::expression::did_you_mean;
use crate::layout::round_up;
use crate::numa::{Orders, Outer, Policy, Topology};
use crate::os::{Errno, Mode, Nodes};
use crate::pages::touch;
pub use crate::reason::Reason;
use crate::size::{self, Bytes};
use crate::sync::First;
use crate::{failure, os};
use std::fmt;

// ---- What can be asked for -------------------------------------------------------------------------------------------

/// The kind of a block's pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// Pages of the smallest size.
    #[default]
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
        None => os::explicit_huge_pages().map_or(&[], |sizes| SIZES.get_or_init(|| Box::new(sizes))),
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

/// Whether pages are prefaulted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Populate {
    /// Pages are faulted in on first touch.
    #[default]
    No,
    /// Prefault, with a suitable number of threads.
    Best,
    /// Prefault, with this number of threads.
    Threads(usize),
}

/// The requested placement; see the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    /// The page size. Where it is not to be had, transparent huge pages take its place, and then base pages.
    pub page: Page,
    /// Prefault.
    pub populate: Populate,
    /// Whether the memory is locked (mlock).
    pub lock: bool,
    /// The NUMA policy.
    pub policy: Option<Policy>,
    /// Whether it is an error if an option is not granted.
    pub strict: bool,
}

impl Placement {
    /// Pages of this kind, and nothing else.
    pub fn of_pages(huge: bool) -> Self {
        Self { page: if huge { Page::Transparent } else { Page::Base }, ..Self::default() }
    }

    /// The placement as `pages` with its options.
    pub fn describe(&self) -> Description {
        let populate = match self.populate {
            Populate::No => Value::Flag(false),
            Populate::Best => Value::Flag(true),
            Populate::Threads(threads) => Value::from(threads),
        };
        Description::of("pages")
            .named("huge", self.page.value())
            .named("populate", populate)
            .named("lock", self.lock)
            .named("numa", self.policy.map(|policy| policy.to_string()))
            .named("strict", self.strict)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, &self.describe().needed())
    }
}

// ---- What was granted ------------------------------------------------------------------------------------------------

/// The outcome of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Not requested.
    #[default]
    NotAsked,
    /// Granted.
    Granted,
    /// Granted in part.
    Partly(Reason),
    /// Not granted.
    Refused(Reason),
}

impl Outcome {
    /// Why it was not granted in full.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Partly(reason) | Self::Refused(reason) => Some(*reason),
            _ => None,
        }
    }
}

/// The options granted to one block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Receipt {
    /// The requested size in bytes.
    pub asked: usize,
    /// The mapped size in bytes.
    pub bytes: usize,
    /// The kind of its pages. Transparent huge pages are a request that the kernel grants where it can.
    pub page: Page,
    /// The page size that was asked for, where it is not that one, and why it was not available.
    pub refused: Option<(Page, Reason)>,
    /// The NUMA policy.
    pub policy: Outcome,
    /// The mode of a granted policy, and its nodes.
    pub nodes: Option<(Mode, Nodes)>,
    /// The number of threads that prefaulted its pages; zero if they were not.
    pub threads: usize,
    /// Whether it is locked into memory.
    pub locked: bool,
}

impl Receipt {
    /// Why options were not granted, one sentence for each.
    pub fn why_not(&self) -> Vec<String> {
        let pages = self.refused.map(|(page, reason)| format!("huge={page}: {reason}"));
        pages.into_iter().chain(self.policy.reason().map(|reason| format!("numa: {reason}"))).collect()
    }
}

// ---- A mapping is made -----------------------------------------------------------------------------------------------

/// An address and a size.
type Mapping = (usize, usize);

fn strict_error(asked: usize, what: &str) -> AllocError {
    let error = AllocError::new(asked, Limit::Placement);
    failure::explain(error, format!("cannot allocate {} as a strict placement requires: {what}", Bytes(asked)));
    error
}

impl Placement {
    /// Creates a mapping of at least `size` bytes at a multiple of `align`, and returns its address and receipt.
    ///
    /// # Errors
    /// If there is no memory; if the pages are to be prefaulted and there are too few; if locking is refused; with
    /// `strict`, if any other option is not granted.
    pub fn map(&self, size: usize, align: usize) -> Result<(usize, Receipt), AllocError> {
        let mut receipt = Receipt { asked: size, ..Receipt::default() };
        let orders = self.orders(&mut receipt);
        self.strictly_on_nodes(&receipt)?;
        let mapping = self.map_pages(size, align, orders.as_ref(), &mut receipt)?;
        self.finish(mapping, orders.as_ref(), &mut receipt).inspect_err(|_| discard(mapping))?;
        Ok((mapping.0, receipt))
    }

    /// The instructions for the kernel.
    fn orders(&self, receipt: &mut Receipt) -> Option<Orders> {
        let orders = self.policy?.within(&Outer::now(with_memory()));
        receipt.policy = match orders {
            Ok(Orders { clipped: true, .. }) => Outcome::Partly(Reason::Cpuset),
            Ok(_) => Outcome::Granted,
            Err(reason) => Outcome::Refused(reason),
        };
        orders.ok()
    }

    /// Fails if a policy was not granted but is required.
    fn strictly_on_nodes(&self, receipt: &Receipt) -> Result<(), AllocError> {
        match receipt.policy.reason() {
            Some(reason) if self.strict => Err(strict_error(receipt.asked, &format!("numa: {reason}"))),
            _ => Ok(()),
        }
    }

    /// Creates a mapping on the pages asked for, or else on transparent huge pages, or on base pages.
    fn map_pages(
        &self,
        size: usize,
        align: usize,
        orders: Option<&Orders>,
        receipt: &mut Receipt,
    ) -> Result<Mapping, AllocError> {
        let wishes = [self.page, Page::Transparent];
        let wishes = match self.page {
            Page::Base => &[],
            Page::Transparent => &wishes[1..],
            Page::Explicit(_) => &wishes[..],
        };
        for &page in wishes {
            let found = match page {
                Page::Explicit(bytes) => map_explicit(size, align, bytes, orders),
                _ => map_transparent(size, align),
            };
            match found {
                Ok(mapping) => {
                    (receipt.page, receipt.bytes) = (page, mapping.1);
                    return Ok(mapping);
                }
                Err(reason) if self.strict && page == self.page && reason.is_refusal() => {
                    return Err(strict_error(size, &format!("huge={page}: {reason}")));
                }
                Err(reason) => receipt.refused = receipt.refused.or(Some((page, reason))),
            }
        }
        receipt.bytes = round_up(size, os::page_size()).unwrap_or(size);
        let node = orders.and_then(Orders::one_node);
        match os::map_aligned(receipt.bytes, align.max(os::page_size()), node) {
            Ok(address) => Ok((address, receipt.bytes)),
            Err(error) => {
                let error = AllocError::new(size, os::why_refused(size, error));
                failure::remember(error);
                Err(error)
            }
        }
    }

    /// Applies policy, prefault and lock to a mapping.
    fn finish(&self, map: Mapping, orders: Option<&Orders>, receipt: &mut Receipt) -> Result<(), AllocError> {
        if let Some(orders) = orders {
            bind_mapping(map, orders, receipt);
        }
        self.strictly_on_nodes(receipt)?;
        if self.populate != Populate::No {
            enough(map.1, orders, receipt, "populate")?;
            self.make_real(map, receipt)?;
        } else if self.lock {
            enough(map.1, orders, receipt, "lock")?;
        }
        if self.lock { lock(map, receipt) } else { Ok(()) }
    }

    /// Faults in pages.
    fn make_real(&self, map: Mapping, receipt: &mut Receipt) -> Result<(), AllocError> {
        let threads = if let Populate::Threads(threads) = self.populate { Some(threads) } else { None };
        // SAFETY: the range was just mapped, and is not unmapped before this returns.
        match touch::around(|| unsafe { touch::make_real(map, page_bytes(receipt.page), true, threads) }) {
            Ok((threads, _)) => {
                receipt.threads = threads;
                Ok(())
            }
            Err(error) => {
                let failed = AllocError::new(receipt.asked, Limit::Errno(error.0));
                failure::explain(
                    failed,
                    format!("cannot populate {} (populate=): {}", Bytes(map.1), Reason::of(error)),
                );
                Err(failed)
            }
        }
    }
}

fn discard((address, size): Mapping) {
    // SAFETY: it was just mapped and is not in use.
    let _ = unsafe { os::unmap(address, size) };
}

/// Creates a mapping advised as transparent huge pages, aligned to whole huge pages.
fn map_transparent(size: usize, align: usize) -> Result<Mapping, Reason> {
    let page = os::huge_page_size().ok_or(Reason::Unsupported)?;
    if size < page {
        return Err(Reason::Small);
    }
    if !os::transparent_huge_pages() {
        return Err(Reason::Off);
    }
    let whole = round_up(size, page).ok_or(Reason::Small)?;
    let address = os::map_aligned(whole, align.max(page), None).map_err(Reason::of)?;
    os::advise_huge(address, whole).inspect_err(|_| discard((address, whole))).map_err(Reason::of)?;
    Ok((address, whole))
}

/// A page size is used if rounding up wastes at most this fraction of the block, or one page of the smallest size.
const WASTE: usize = 8;
const SMALL_WASTE: usize = 2 << 20;

/// Creates a mapping of explicit huge pages of `page` bytes, if they suit the block.
fn map_explicit(size: usize, align: usize, page: usize, orders: Option<&Orders>) -> Result<Mapping, Reason> {
    let whole = round_up(size, page).filter(|_| size >= page).ok_or(Reason::Small)?;
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
        discard((address, whole));
        return Err(Reason::Node);
    }
    Ok((address, whole))
}

/// Binds the pages of a mapping to their nodes.
pub(crate) fn bind((address, size): Mapping, orders: &Orders) -> Result<(), Errno> {
    os::bind(address, size, orders.mode, &orders.nodes)
}

/// Does so, and writes the receipt.
fn bind_mapping(mapping: Mapping, orders: &Orders, receipt: &mut Receipt) {
    receipt.nodes = Some((orders.mode, orders.nodes));
    let Err(error) = bind(mapping, orders) else { return };
    match orders.one_node() {
        // Where there are no policies of pages, it was given when mapping, and is preferred.
        Some(_) if error == Errno::UNSUPPORTED => {
            if orders.mode != Mode::Preferred && with_memory().len() > 1 {
                receipt.policy = Outcome::Partly(Reason::Preferred);
            }
        }
        _ => (receipt.policy, receipt.nodes) = (Outcome::Refused(Reason::of(error)), None),
    }
}

/// The nodes with memory, as of the first call, because a query costs more than a small block.
fn with_memory() -> Nodes {
    static NODES: First<Nodes> = First::new();
    *NODES.get_or_init(|| Box::new(Topology::read().with_memory()))
}

/// The size from which on a query of the available memory is worth its cost.
const LOOK: usize = 4 << 20;

/// Fails if fewer than `size` bytes are available, before the kernel has to kill a process.
fn enough(size: usize, orders: Option<&Orders>, receipt: &Receipt, what: &str) -> Result<(), AllocError> {
    if matches!(receipt.page, Page::Explicit(_)) || size < LOOK {
        return Ok(()); // reserved already, or not worth a query
    }
    let machine = os::headroom();
    // Querying single nodes is worth it only if there are others.
    let bound = orders.filter(|orders| orders.mode == Mode::Bind && orders.nodes != with_memory());
    let nodes = bound.map_or(usize::MAX, |orders| Topology::read().available_on(&orders.nodes));
    let available = machine.min(nodes);
    let tables = size / 256; // an estimate
    if size + tables <= available {
        return Ok(());
    }
    let whose = match bound {
        Some(orders) if nodes < machine => format!("on nodes {}", orders.nodes),
        _ => "in this machine or its memory cgroup".into(),
    };
    let error = AllocError::new(receipt.asked, Limit::Available { available });
    let reason = format!(
        "cannot allocate {}: {} have to be resident at once ({what}), with about {} for page tables, and {} are \
         available {whose}",
        Bytes(receipt.asked),
        Bytes(size),
        Bytes(tables),
        Bytes(available)
    );
    failure::explain(error, reason);
    Err(error)
}

/// Locks a mapping.
fn lock((address, size): Mapping, receipt: &mut Receipt) -> Result<(), AllocError> {
    if os::lock(address, size).is_ok() {
        receipt.locked = true;
        return Ok(());
    }
    let failed = AllocError::new(receipt.asked, Limit::Locked { limit: os::lock_limit().unwrap_or(usize::MAX) });
    failure::remember(failed);
    Err(failed)
}
