//! Placement: the page size, NUMA policy, prefault and lock of one mapping, each with its outcome in a receipt.

#![allow(unsafe_code)] // Safety: a mapping is created here and not in use until it is returned.

pub use crate::pages::mapping::{Page, page_bytes};

use crate::description::{Description, Value, separated};
use crate::error::{AllocError, Limit};
use crate::layout::round_up;
use crate::numa::policy::{Orders, Outer, Policy};
use crate::numa::topology::Topology;
use crate::os::{Errno, Mode, Nodes};
use crate::pages::mapping;
use crate::pages::receipt::{Outcome, Reason, Receipt};
use crate::pages::touch::{self, Job, Way};
use crate::size::Bytes;
use crate::sync::first::First;
use crate::{failure, os};
use std::fmt;

/// Whether pages are prefaulted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Populate {
    /// Pages are faulted in on first touch.
    No,
    /// Prefault, with a suitable number of threads.
    Best,
    /// Prefault, with this number of threads.
    Threads(usize),
}

/// The requested placement; see the module.
#[derive(Clone, Debug, PartialEq)]
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

impl Default for Placement {
    fn default() -> Self {
        Self { page: Page::Base, populate: Populate::No, lock: false, policy: None, strict: false }
    }
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

/// A mapping with its receipt.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The first byte of the block.
    pub address: usize,
    /// The size of the mapping from there in bytes.
    pub size: usize,
    /// What was granted.
    pub receipt: Receipt,
}

fn strict_error(asked: usize, what: &str) -> AllocError {
    let error = AllocError::new(asked, Limit::Placement);
    failure::explain(error, format!("cannot allocate {} as a strict placement requires: {what}", Bytes(asked)));
    error
}

impl Placement {
    /// Creates a mapping of at least `size` bytes at a multiple of `align`.
    ///
    /// # Errors
    /// If there is no memory; if the pages are to be prefaulted and there are too few; if locking is refused; with
    /// `strict`, if any other option is not granted.
    pub fn map(&self, size: usize, align: usize) -> Result<Placed, AllocError> {
        let mut receipt = Receipt::new(size);
        let (address, size) = self.place(size, align, &mut receipt)?;
        Ok(Placed { address, size, receipt })
    }

    fn place(&self, size: usize, align: usize, receipt: &mut Receipt) -> Result<(usize, usize), AllocError> {
        let orders = self.orders(receipt);
        self.strictly_on_nodes(receipt)?;
        let mapping = self.map_pages(size, align, orders.as_ref(), receipt)?;
        self.finish(mapping, orders, receipt).inspect_err(|_| {
            // SAFETY: the mapping was created above and is not in use.
            let _ = unsafe { os::unmap(mapping.0, mapping.1) };
        })?;
        Ok(mapping)
    }

    /// Applies policy, prefault and lock to a mapping.
    fn finish(&self, map: (usize, usize), orders: Option<Orders>, receipt: &mut Receipt) -> Result<(), AllocError> {
        let orders = orders.as_ref();
        if let Some(orders) = orders {
            bind(map, orders, receipt);
        }
        self.strictly_on_nodes(receipt)?;
        if self.populate != Populate::No {
            self.make_real(map, orders, receipt)?;
        } else if self.lock {
            enough(map.1, orders, receipt, "lock")?;
        }
        if self.lock { lock(map, receipt) } else { Ok(()) }
    }

    /// Fails if a policy was not granted but is required.
    fn strictly_on_nodes(&self, receipt: &Receipt) -> Result<(), AllocError> {
        match receipt.policy.reason() {
            Some(reason) if self.strict => Err(strict_error(receipt.asked, &format!("numa: {reason}"))),
            _ => Ok(()),
        }
    }
}

impl Placement {
    /// The instructions for the kernel.
    fn orders(&self, receipt: &mut Receipt) -> Option<Orders> {
        let policy = self.policy?;
        let orders = match policy.within(&Outer::now(with_memory())) {
            Ok(orders) => orders,
            Err(reason) => {
                receipt.policy = Outcome::Refused(reason);
                return None;
            }
        };
        receipt.policy = if orders.clipped { Outcome::Partly(Reason::Cpuset) } else { Outcome::Granted };
        Some(orders)
    }
}

/// Binds a mapping to its nodes.
fn bind(mapping: (usize, usize), orders: &Orders, receipt: &mut Receipt) {
    receipt.nodes = Some((orders.mode, orders.nodes));
    let Err(error) = mapping::bind(mapping, orders) else { return };
    match orders.one_node() {
        // Where there are no policies of pages, it was given when mapping, and is preferred.
        Some(node) if error == Errno::UNSUPPORTED => {
            if orders.mode != Mode::Preferred && with_memory() != Nodes::one(node) {
                receipt.policy = Outcome::Partly(Reason::Preferred);
            }
        }
        _ => (receipt.policy, receipt.nodes) = (Outcome::Refused(Reason::of(error)), None),
    }
}

/// The nodes with memory, as of the first call, because a query costs more than a small block.
fn with_memory() -> Nodes {
    static NODES: First<Nodes> = First::new();
    *NODES.get_or_make(|| Topology::read().with_memory())
}

impl Placement {
    /// Creates a mapping on the pages asked for, or else on the next smaller ones.
    fn map_pages(
        &self,
        size: usize,
        align: usize,
        orders: Option<&Orders>,
        receipt: &mut Receipt,
    ) -> Result<(usize, usize), AllocError> {
        let wishes = [self.page, Page::Transparent];
        let wishes = match self.page {
            Page::Base => &[],
            Page::Transparent => &wishes[1..],
            Page::Explicit(_) => &wishes[..],
        };
        for (refused, &page) in receipt.refused.iter_mut().zip(wishes) {
            let found = match page {
                Page::Base => break,
                Page::Transparent => mapping::map_transparent(size, align),
                Page::Explicit(bytes) => mapping::map_explicit(size, align, bytes, orders),
            };
            match found {
                Ok(mapping) => {
                    (receipt.page, receipt.bytes) = (page, mapping.1);
                    return Ok(mapping);
                }
                Err(reason) if self.strict && page == self.page && reason.is_refusal() => {
                    return Err(strict_error(size, &format!("huge={page}: {reason}")));
                }
                Err(reason) => *refused = Some((page, reason)),
            }
        }
        let bytes = round_up(size, os::page_size()).unwrap_or(size);
        let node = orders.and_then(Orders::one_node);
        let address = os::map_aligned(bytes, align.max(os::page_size()), node).map_err(|error| {
            let error = AllocError::new(size, os::why_refused(size, error));
            failure::remember(error);
            error
        })?;
        (receipt.page, receipt.bytes) = (Page::Base, bytes);
        Ok((address, bytes))
    }
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
    let bound = orders.filter(|orders| orders.mode == os::Mode::Bind && orders.nodes != with_memory());
    let nodes = bound.map_or(usize::MAX, |orders| Topology::read().available_on(&orders.nodes));
    let available = machine.min(nodes);
    let tables = size / 256; // an estimate
    if size + tables <= available {
        return Ok(());
    }
    let error = AllocError::new(receipt.asked, Limit::Available { available });
    let whose = match bound {
        Some(orders) if nodes < machine => format!("on nodes {}", orders.nodes),
        _ => "in this machine or its memory cgroup".into(),
    };
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

impl Placement {
    /// Faults in pages.
    fn make_real(
        &self,
        (address, size): (usize, usize),
        orders: Option<&Orders>,
        receipt: &mut Receipt,
    ) -> Result<(), AllocError> {
        enough(size, orders, receipt, "populate")?;
        let job = Job {
            address,
            size,
            step: page_bytes(receipt.page),
            way: Way::Write,
            threads: if let Populate::Threads(threads) = self.populate { Some(threads) } else { None },
        };
        // SAFETY: the range was just mapped, and is not unmapped before this returns.
        match touch::around(|| unsafe { touch::make_real(job) }) {
            Ok(done) => (receipt.populate, receipt.threads) = (Outcome::Granted, done.threads),
            Err(error) => {
                receipt.populate = Outcome::Refused(Reason::of(error));
                let failed = AllocError::new(receipt.asked, Limit::Errno(error.0));
                failure::explain(failed, format!("cannot populate {} (populate=): {}", Bytes(size), Reason::of(error)));
                return Err(failed);
            }
        }
        Ok(())
    }
}

/// Locks a mapping.
///
/// # Errors
/// If the limit does not allow it.
fn lock((address, size): (usize, usize), receipt: &mut Receipt) -> Result<(), AllocError> {
    if os::lock(address, size).is_ok() {
        receipt.lock = Outcome::Granted;
        return Ok(());
    }
    receipt.lock = Outcome::Refused(Reason::LockLimit);
    let limit = os::lock_limit().unwrap_or(usize::MAX);
    let failed = AllocError::new(receipt.asked, Limit::Locked { limit });
    failure::explain(
        failed,
        format!(
            "cannot lock {} into memory: RLIMIT_MEMLOCK allows this process {}, other locked memory included \
             (ulimit -l, or LimitMEMLOCK= of its service)",
            Bytes(size),
            Bytes(limit)
        ),
    );
    Err(failed)
}
