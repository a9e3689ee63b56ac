//! Nodes: the instructions for the kernel, within the outer restrictions, and their outcome.

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
    /// The instructions for the kernel.
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
            // A page lies on one node as a whole, and in C order slabs along axis 0 are slabs of bytes.
            Policy::Blocked(number) if number != 0 && orders.axis.is_none() && receipt.asked > page_size() => {
                Outcome::Partly(Reason::Axis)
            }
            _ if orders.clipped => Outcome::Partly(Reason::Cpuset),
            _ => Outcome::Granted,
        };
        Some(orders)
    }
}

/// Binds a mapping to its nodes. Returns false if there are too many slabs; pages then have to be migrated once they
/// are resident.
pub(super) fn bound(mapping: (usize, usize), orders: &Orders, receipt: &mut Receipt) -> bool {
    receipt.nodes = Some((orders.mode, orders.nodes));
    mapping::bind(mapping, orders, receipt.page).unwrap_or_else(|error| {
        (receipt.policy, receipt.nodes) = (Outcome::Refused(Reason::of(error)), None);
        true
    })
}

/// Migrates resident pages to their slabs.
pub(super) fn moved((address, _): (usize, usize), orders: &Orders, receipt: &mut Receipt) {
    if let Some(reason) = receipt.populate.reason() {
        receipt.policy = Outcome::Partly(reason); // pages not resident yet will come from any node
    }
    match touch::around(None, |go_on| migration::migrate((address, receipt.asked), orders, go_on)) {
        Ok(sum) if sum.failed == 0 => {}
        Ok(sum) => receipt.policy = Outcome::Partly(sum.why_not.unwrap_or(Reason::Node)),
        Err(error) => receipt.policy = Outcome::Refused(Reason::of(error)),
    }
}

/// The nodes with memory, as of the first call, because a query costs more than a small block.
pub(super) fn with_memory() -> Nodes {
    static NODES: First<Nodes> = First::new();
    *NODES.get_or_make(|| Topology::read().with_memory())
}

/// The processors on the nodes of a policy, if these are not all nodes.
pub(super) fn near(orders: &Orders) -> Option<Processors> {
    if orders.mode == Mode::Local {
        return None; // stands for this thread's node
    }
    let may = thread_processors().ok()?;
    let found = Topology::read().processors_of(&orders.nodes).and(&may);
    (!found.is_empty() && found != may).then_some(found)
}
