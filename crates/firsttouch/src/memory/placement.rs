//! Placement: page size, NUMA policy, prefault and lock of one mapping, each granted or on its receipt.

#![allow(unsafe_code)] // Safety: a mapping is made here, and nobody knows it until it is handed out.

use super::mapping::{Mapper, Private, bind};
pub use super::page::Page;
use super::page::page_bytes;
use super::policy::{Orders, Outer, Policy};
use super::receipt::{Outcome, Reason, Receipt};
use super::topology::Topology;
use super::touch::{self, Job, Pattern, Way};
use crate::failure::{self, AllocError, Limit};
use crate::layout::round_up;
use crate::os::{self, Errno, Nodes};
use std::fmt;
use std::sync::OnceLock;

/// Whether pages are made real at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Populate {
    /// When they are first touched.
    No,
    /// At once, by as many threads as suit.
    Best,
    /// At once, by so many threads.
    Threads(usize),
}

/// What is asked for; see the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// Page sizes in the order of preference; base pages where none can be had.
    pub pages: Vec<Page>,
    /// Prefault.
    pub populate: Populate,
    /// Whether it stays in memory (mlock).
    pub lock: bool,
    /// Which nodes.
    pub policy: Option<Policy>,
    /// Whether what is not granted is an error.
    pub strict: bool,
}

impl Default for Placement {
    fn default() -> Self {
        Self { pages: Vec::new(), populate: Populate::No, lock: false, policy: None, strict: false }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let python = |value: bool| if value { "True" } else { "False" };
        match self.pages.as_slice() {
            [] => write!(f, "huge=False")?,
            [one] => write!(f, "huge={one}")?,
            many => write!(f, "huge=({})", many.iter().map(Page::to_string).collect::<Vec<_>>().join(", "))?,
        }
        match self.populate {
            Populate::No => write!(f, ", populate=False")?,
            Populate::Best => write!(f, ", populate=True")?,
            Populate::Threads(threads) => write!(f, ", populate={threads}")?,
        }
        match self.policy {
            None => write!(f, ", lock={}, numa=None", python(self.lock))?,
            Some(policy) => write!(f, ", lock={}, numa='{policy}'", python(self.lock))?,
        }
        write!(f, ", strict={}", python(self.strict))
    }
}

/// A mapping with its receipt.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The first byte of the block.
    pub address: usize,
    /// Bytes mapped from there.
    pub size: usize,
    /// What was granted.
    pub receipt: Receipt,
}

/// Looking at what is available pays from so many bytes on.
const LOOK: usize = 4 << 20;

fn strict_error(asked: usize, what: &str) -> AllocError {
    let error = AllocError::new(asked, Limit::Placement);
    failure::explain(error, format!("{asked} bytes could not be had as strict=True asks: {what}"));
    error
}

impl Placement {
    /// A mapping of at least `size` bytes at a multiple of `align`.
    ///
    /// # Errors
    /// Where there is no memory; where the pages are to be real at once and there are fewer; where locking is refused;
    /// with `strict`, where anything else that was asked for is not granted.
    pub fn map(&self, size: usize, align: usize) -> Result<Placed, AllocError> {
        self.map_by(&mut Private, size, align)
    }

    /// The same with mappings that `mapper` makes.
    pub(super) fn map_by(&self, mapper: &mut dyn Mapper, size: usize, align: usize) -> Result<Placed, AllocError> {
        let mut receipt = Receipt::new(size);
        let orders = self.orders(&mut receipt);
        if self.strict
            && let Some(reason) = receipt.policy.reason()
        {
            receipt.count(!self.pages.is_empty());
            return Err(strict_error(size, &format!("numa: {reason}")));
        }
        let placed = self.map_pages(mapper, size, align, orders.as_ref(), &mut receipt)?;
        let finished = self.finish(placed, orders.as_ref(), &mut receipt);
        receipt.count(!self.pages.is_empty());
        finished.inspect_err(|_| {
            // SAFETY: the mapping was made above, and nobody knows it.
            let _ = unsafe { os::unmap(placed.0, placed.1) };
        })?;
        Ok(Placed { address: placed.0, size: placed.1, receipt })
    }

    /// What to tell the kernel of nodes.
    fn orders(&self, receipt: &mut Receipt) -> Option<Orders> {
        let policy = self.policy?;
        match policy.within(&Outer::now(nodes_with_memory())) {
            Ok(orders) => {
                receipt.policy = if orders.clipped { Outcome::Partly(Reason::Cpuset) } else { Outcome::Granted };
                Some(orders)
            }
            Err(reason) => {
                receipt.policy = Outcome::Refused(reason);
                None
            }
        }
    }

    /// A mapping on the first page size that can be had.
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
                Page::Transparent => mapper.transparent(size, align),
                Page::Explicit(bytes) => mapper.explicit(size, align, bytes, orders),
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
            let what = format!("huge={page}: {reason}");
            receipt.count(true);
            return Err(strict_error(size, &what));
        }
        let bytes = round_up(size, os::page_size()).unwrap_or(size);
        let mapping = mapper.base(bytes, align.max(os::page_size())).map_err(|error| {
            let error = AllocError::new(size, os::why_refused(size, error));
            failure::remember(error);
            error
        })?;
        (receipt.page, receipt.bytes) = (Page::Base, mapping.1);
        Ok(mapping)
    }

    /// Policy, prefault and lock of a mapping.
    fn finish(
        &self,
        mapping: (usize, usize),
        orders: Option<&Orders>,
        receipt: &mut Receipt,
    ) -> Result<(), AllocError> {
        let asked = receipt.asked;
        if let Some(orders) = orders {
            receipt.nodes = Some((orders.mode, orders.nodes));
            if let Err(error) = bind(mapping, orders, receipt.page) {
                (receipt.policy, receipt.nodes) = (Outcome::Refused(Reason::of(error)), None);
            }
        }
        if self.strict
            && let Some(reason) = receipt.policy.reason()
        {
            return Err(strict_error(asked, &format!("numa: {reason}")));
        }
        if self.populate != Populate::No {
            self.populate(mapping, orders, receipt)?;
        } else if self.lock {
            enough(mapping.1, orders, receipt.page, asked, "lock=True")?;
        }
        if self.lock {
            receipt.lock = Outcome::Granted;
            if let Err(error) = os::lock(mapping.0, mapping.1) {
                receipt.lock = Outcome::Refused(Reason::of(error));
                let limit = os::lock_limit().unwrap_or(usize::MAX);
                let failed = AllocError::new(asked, Limit::Locked { limit });
                failure::explain(
                    failed,
                    format!(
                        "{} bytes could not be locked into memory (lock=True): RLIMIT_MEMLOCK allows this process \
                         {limit} bytes, other locked memory included (ulimit -l, or LimitMEMLOCK= of its service)",
                        mapping.1
                    ),
                );
                return Err(failed);
            }
        }
        Ok(())
    }

    fn populate(
        &self,
        (address, size): (usize, usize),
        orders: Option<&Orders>,
        receipt: &mut Receipt,
    ) -> Result<(), AllocError> {
        enough(size, orders, receipt.page, receipt.asked, "populate=")?;
        let job = Job {
            address,
            size,
            step: page_bytes(receipt.page),
            way: Way::Write,
            threads: if let Populate::Threads(threads) = self.populate { Some(threads) } else { None },
            processors: orders.filter(|_| size >= LOOK).and_then(near),
            pattern: Pattern::Dynamic,
        };
        // SAFETY: the range was just mapped, and nobody unmaps it before this returns.
        match touch::around(|go_on| unsafe { touch::make_real(job, go_on) }) {
            Ok(done) => (receipt.populate, receipt.threads) = (Outcome::Granted, done.threads),
            Err(Errno::INTERRUPTED) => receipt.populate = Outcome::Partly(Reason::Interrupted),
            Err(error) => {
                receipt.populate = Outcome::Refused(Reason::of(error));
                let failed = AllocError::new(receipt.asked, Limit::Errno(error.0));
                failure::explain(
                    failed,
                    format!("{size} bytes could not be made real (populate=): {}", Reason::of(error)),
                );
                return Err(failed);
            }
        }
        Ok(())
    }
}

/// Nodes with memory, as they were when first asked for: a look costs more than a small block.
fn nodes_with_memory() -> Nodes {
    static NODES: OnceLock<Nodes> = OnceLock::new();
    *NODES.get_or_init(|| Topology::read().with_memory())
}

/// Processors on the nodes that one order names, where these are not all.
fn near(orders: &Orders) -> Option<os::Processors> {
    if orders.mode == os::Mode::Local {
        return None; // this thread's node is meant
    }
    let may = os::thread_processors().ok()?;
    let found = Topology::read().processors_of(&orders.nodes).and(&may);
    (!found.is_empty() && found != may).then_some(found)
}

/// The error where fewer than `size` bytes are available, before the kernel has to kill somebody.
fn enough(size: usize, orders: Option<&Orders>, page: Page, asked: usize, what: &str) -> Result<(), AllocError> {
    if matches!(page, Page::Explicit(_)) || size < LOOK {
        return Ok(()); // reserved already, or not worth the look
    }
    let machine = os::headroom();
    // A look at one node is worth it only where there are others.
    let bound = orders.filter(|orders| orders.mode == os::Mode::Bind && orders.nodes != nodes_with_memory());
    let nodes = bound.map_or(usize::MAX, |orders| Topology::read().available_on(&orders.nodes));
    let available = machine.min(nodes);
    if size + size / 256 <= available {
        return Ok(()); // the kernel's tables are about as much more
    }
    let error = AllocError::new(asked, Limit::Available { available });
    let whose = match bound {
        Some(orders) if nodes < machine => format!("on nodes {}", orders.nodes),
        _ => "in this machine or its memory cgroup".into(),
    };
    let reason = format!("{size} bytes are to be real at once ({what}), and {available} are available {whose}");
    failure::explain(error, reason);
    Err(error)
}
