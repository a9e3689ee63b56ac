//! Placement: page size, NUMA policy, prefault and lock of one mapping, each granted or on its receipt.

#![allow(unsafe_code)] // Safety: a mapping is made here, and nobody knows it until it is handed out.

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
use std::fmt;

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
    /// Whether a prefault shows how far it is.
    pub progress: bool,
}

impl Default for Placement {
    fn default() -> Self {
        Self { pages: Vec::new(), populate: Populate::No, lock: false, policy: None, strict: false, progress: false }
    }
}

impl Placement {
    /// What is asked for, as arguments of `pages`.
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
    /// Bytes mapped from there.
    pub size: usize,
    /// What was granted.
    pub receipt: Receipt,
}

fn strict_error(asked: usize, what: &str) -> AllocError {
    let error = AllocError::new(asked, Limit::Placement);
    failure::explain(error, format!("cannot allocate {asked} bytes as a strict placement requires: {what}"));
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
            // SAFETY: the mapping was made above, and nobody knows it.
            let _ = unsafe { os::unmap(mapping.0, mapping.1) };
        })?;
        Ok(mapping)
    }

    /// Policy, prefault and lock of a mapping.
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

    /// An error where a policy was not granted and has to be.
    fn strictly_on_nodes(&self, receipt: &Receipt) -> Result<(), AllocError> {
        match receipt.policy.reason() {
            Some(reason) if self.strict => Err(strict_error(receipt.asked, &format!("numa: {reason}"))),
            _ => Ok(()),
        }
    }
}
