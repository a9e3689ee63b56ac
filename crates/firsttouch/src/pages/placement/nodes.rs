//! Which nodes: what to tell the kernel, within what was decided outside, and what it made of it.

use super::Placement;
use crate::numa::axis;
use crate::numa::policy::{Orders, Outer, Policy};
use crate::numa::topology::Topology;
use crate::os::{Mode, Nodes, Processors, page_size, thread_processors};
use crate::pages::mapping;
use crate::pages::migration;
use crate::pages::receipt::{Outcome, Reason, Receipt};
use crate::pages::touch;
use crate::sync::first::First;

impl Placement {
    /// What to tell the kernel of nodes.
    pub(super) fn orders(&self, receipt: &mut Receipt) -> Option<Orders> {
        let policy = self.policy?;
        let mut orders = match policy.within(&Outer::now(with_memory())) {
            Ok(orders) => orders,
            Err(reason) => {
                receipt.policy = Outcome::Refused(reason);
                return None;
            }
        };
        orders.axis = axis::expected(receipt.asked).filter(|_| orders.slabs);
        receipt.policy = match policy {
            // A page is on one node as a whole, and in C order slabs along axis 0 are slabs of bytes.
            Policy::Blocked(number) if number != 0 && orders.axis.is_none() && receipt.asked > page_size() => {
                Outcome::Partly(Reason::Axis)
            }
            _ if orders.clipped => Outcome::Partly(Reason::Cpuset),
            _ => Outcome::Granted,
        };
        Some(orders)
    }
}

/// Tells the kernel where pages are to come from. False where that are too many slabs for it: then pages have to be
/// moved there once they are real.
pub(super) fn bound(mapping: (usize, usize), orders: &Orders, receipt: &mut Receipt) -> bool {
    receipt.nodes = Some((orders.mode, orders.nodes));
    mapping::bind(mapping, orders, receipt.page).unwrap_or_else(|error| {
        (receipt.policy, receipt.nodes) = (Outcome::Refused(Reason::of(error)), None);
        true
    })
}

/// Moves pages that are real to their slabs.
pub(super) fn moved((address, _): (usize, usize), orders: &Orders, receipt: &mut Receipt) {
    if let Some(reason) = receipt.populate.reason() {
        receipt.policy = Outcome::Partly(reason); // what is not real yet will come from anywhere
    }
    match touch::around(None, |go_on| migration::migrate((address, receipt.asked), orders, go_on)) {
        Ok(sum) if sum.failed == 0 => {}
        Ok(sum) => receipt.policy = Outcome::Partly(sum.why_not.unwrap_or(Reason::Node)),
        Err(error) => receipt.policy = Outcome::Refused(Reason::of(error)),
    }
}

/// Nodes with memory, as they were when first asked for: a look costs more than a small block.
pub(super) fn with_memory() -> Nodes {
    static NODES: First<Nodes> = First::new();
    *NODES.get_or_make(|| Topology::read().with_memory())
}

/// Processors on the nodes that one order names, where these are not all.
pub(super) fn near(orders: &Orders) -> Option<Processors> {
    if orders.mode == Mode::Local {
        return None; // this thread's node is meant
    }
    let may = thread_processors().ok()?;
    let found = Topology::read().processors_of(&orders.nodes).and(&may);
    (!found.is_empty() && found != may).then_some(found)
}
