//! Placement: the page size, NUMA policy, prefault and lock of one mapping, each with its outcome in a receipt.

#![allow(unsafe_code)] // Safety: a mapping is created here and not in use until it is returned.

pub use crate::pages::mapping::{Page, page_bytes};

use crate::description::{Description, Value, separated};
use crate::error::{AllocError, Limit};
use crate::layout::round_up;
use crate::numa::policy::{Orders, Outer, Policy};
use crate::numa::topology::Topology;
use crate::os::{Errno, Mode, Nodes, Processors, thread_processors};
use crate::pages::mapping;
use crate::pages::mapping::{Mapper, Private};
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
    /// Page sizes in the order of preference; base pages if none is available.
    pub pages: Vec<Page>,
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
        Self { pages: Vec::new(), populate: Populate::No, lock: false, policy: None, strict: false }
    }
}

impl Placement {
    /// Pages of this kind, and nothing else.
    pub fn of_pages(huge: bool) -> Self {
        let pages = if huge { vec![Page::Transparent] } else { Vec::new() };
        Self { pages, ..Self::default() }
    }

    /// The placement as `pages` with its options.
    pub fn describe(&self) -> Description {
        let huge = match self.pages.as_slice() {
            [] => Value::Flag(false),
            [one] => one.value(),
            many => Value::Several(many.iter().map(Page::value).collect()),
        };
        let populate = match self.populate {
            Populate::No => Value::Flag(false),
            Populate::Best => Value::Flag(true),
            Populate::Threads(threads) => Value::from(threads),
        };
        Description::of("pages")
            .named("huge", huge)
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
        self.map_by(&mut Private, size, align)
    }

    /// The same with mappings created by `mapper`.
    pub(crate) fn map_by(&self, mapper: &mut dyn Mapper, size: usize, align: usize) -> Result<Placed, AllocError> {
        let mut receipt = Receipt::new(size);
        let (address, size) = self.place(mapper, size, align, &mut receipt)?;
        Ok(Placed { address, size, receipt })
    }

    fn place(
        &self,
        mapper: &mut dyn Mapper,
        size: usize,
        align: usize,
        receipt: &mut Receipt,
    ) -> Result<(usize, usize), AllocError> {
        let orders = self.orders(receipt);
        self.strictly_on_nodes(receipt)?;
        let mapping = self.map_pages(mapper, size, align, orders.as_ref(), receipt)?;
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
    if let Err(error) = mapping::bind(mapping, orders, receipt.page) {
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
}

/// The nodes with memory, as of the first call, because a query costs more than a small block.
fn with_memory() -> Nodes {
    static NODES: First<Nodes> = First::new();
    *NODES.get_or_make(|| Topology::read().with_memory())
}

/// The processors on the nodes of a policy, if these are not all nodes.
fn near(orders: &Orders) -> Option<Processors> {
    if orders.mode == Mode::Local {
        return None; // stands for this thread's node
    }
    let may = thread_processors().ok()?;
    let found = Topology::read().processors_of(&orders.nodes).and(&may);
    (!found.is_empty() && found != may).then_some(found)
}

impl Placement {
    /// Creates a mapping on the first page size that is available.
    fn map_pages(
        &self,
        mapper: &mut dyn Mapper,
        size: usize,
        align: usize,
        orders: Option<&Orders>,
        receipt: &mut Receipt,
    ) -> Result<(usize, usize), AllocError> {
        for (at, &page) in self.pages.iter().enumerate() {
            let found = match page {
                Page::Base => break,
                Page::Transparent => mapping::map_transparent(mapper, size, align),
                Page::Explicit(bytes) => mapping::map_explicit(mapper, size, align, bytes, orders),
            };
            match found {
                Ok(mapping) => {
                    (receipt.page, receipt.bytes) = (page, mapping.1);
                    return Ok(mapping);
                }
                Err(reason) => receipt.refused[at.min(receipt.refused.len() - 1)] = Some((page, reason)),
            }
        }
        let refusal = receipt.refused.iter().flatten().find(|(_, reason)| reason.is_refusal());
        if self.strict
            && !self.pages.contains(&Page::Base)
            && let Some((page, reason)) = refusal
        {
            return Err(strict_error(size, &format!("huge={page}: {reason}")));
        }
        let bytes = round_up(size, os::page_size()).unwrap_or(size);
        let mapping = mapper.map(bytes, align.max(os::page_size()), None, orders).map_err(|error| {
            let error = AllocError::new(size, os::why_refused(size, error));
            failure::remember(error);
            error
        })?;
        (receipt.page, receipt.bytes) = (Page::Base, mapping.1);
        Ok(mapping)
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
    /// Faults in pages, by threads near the nodes that they come from.
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
            processors: orders.filter(|_| size >= LOOK).and_then(near),
        };
        // SAFETY: the range was just mapped, and is not unmapped before this returns.
        match touch::around(|go_on| unsafe { touch::make_real(job, go_on) }) {
            Ok(done) => (receipt.populate, receipt.threads) = (Outcome::Granted, done.threads),
            Err(Errno::INTERRUPTED) => receipt.populate = Outcome::Partly(Reason::Interrupted),
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
