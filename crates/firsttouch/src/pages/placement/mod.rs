//! Placement: the page size, NUMA policy, prefault and lock of one mapping, each with its outcome in a receipt.

#![allow(unsafe_code)] // Safety: a mapping is created here and not in use until it is returned.

mod available;
mod locked;
mod mapped;
mod nodes;
mod prefault;

use crate::description::{Argument, Description, Value, separated};
use crate::error::{AllocError, Limit};
use crate::failure;
use crate::numa::policy::{Orders, Policy};
use crate::os;
use crate::pages::mapping::{Mapper, Private};
pub use crate::pages::page::{Page, page_bytes};
use crate::pages::receipt::Receipt;
use crate::size::Bytes;
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
    /// Whether a prefault shows its progress.
    pub progress: bool,
}

impl Default for Placement {
    fn default() -> Self {
        Self { pages: Vec::new(), populate: Populate::No, lock: false, policy: None, strict: false, progress: false }
    }
}

impl Placement {
    /// The placement as arguments of `pages`.
    pub fn arguments(&self) -> Vec<Argument> {
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
        let described = Description::of("pages")
            .named("huge", huge)
            .named("populate", populate)
            .named("lock", self.lock)
            .named("numa", self.policy.map(|policy| policy.to_string()))
            .named("strict", self.strict)
            .named("progress", self.progress);
        described.arguments.unwrap_or_default()
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, &self.arguments())
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
        let placed = self.place(mapper, size, align, &mut receipt);
        receipt.count(!self.pages.is_empty());
        let (address, size) = placed?;
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
        let lazily = orders.is_none_or(|orders| nodes::bound(map, orders, receipt));
        self.strictly_on_nodes(receipt)?;
        if self.populate != Populate::No || !lazily {
            self.make_real(map, orders, receipt)?;
        } else if self.lock {
            available::enough(map.1, orders, receipt, "lock")?;
        }
        if let Some(orders) = orders.filter(|_| !lazily) {
            nodes::moved(map, orders, receipt);
            self.strictly_on_nodes(receipt)?;
        }
        if self.lock { locked::lock(map, receipt) } else { Ok(()) }
    }

    /// Fails if a policy was not granted but is required.
    fn strictly_on_nodes(&self, receipt: &Receipt) -> Result<(), AllocError> {
        match receipt.policy.reason() {
            Some(reason) if self.strict => Err(strict_error(receipt.asked, &format!("numa: {reason}"))),
            _ => Ok(()),
        }
    }
}
