//! Available memory: of the machine, of its memory cgroup, on the nodes.

use super::nodes::with_memory;
use crate::error::{AllocError, Limit};
use crate::failure;
use crate::numa::policy::Orders;
use crate::numa::topology::Topology;
use crate::os;
use crate::pages::page::Page;
use crate::pages::receipt::Receipt;
use crate::size::Bytes;

/// The size from which on a query of the available memory is worth its cost.
pub(super) const LOOK: usize = 4 << 20;

/// Fails if fewer than `size` bytes are available, before the kernel has to kill a process.
pub(super) fn enough(size: usize, orders: Option<&Orders>, receipt: &Receipt, what: &str) -> Result<(), AllocError> {
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
