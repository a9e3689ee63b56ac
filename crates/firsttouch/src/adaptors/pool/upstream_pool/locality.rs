//! On machines with several nodes: whether an idle block is local.

use super::UpstreamPool;
use super::free_cache::Idle;
use crate::adaptors::Pool;
use crate::allocator::Allocator;
use crate::heap::nodes;
use crate::heap::nodes::Found;
use crate::heap::segment;
use crate::numa::local_nodes::LocalNodes;
use crate::numa::policy::Policy;
use crate::os;
use crate::sources::{Pages, PlacedPages};
use std::any::Any;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

/// Whether an option decides the placement of an allocator's memory. A pool over it does not check which node is
/// local.
pub(super) fn is_placed(allocator: &dyn Allocator) -> bool {
    let any: &dyn Any = allocator;
    let policy = any.downcast_ref::<PlacedPages>().and_then(|pages| pages.placement().policy);
    policy.is_some_and(|policy| policy != Policy::Local) || allocator.upstream().is_some_and(|on| is_placed(&**on))
}

/// Whether an allocator's blocks do not share pages, not even their first and last.
pub(super) fn has_own_pages(allocator: &dyn Allocator) -> bool {
    let any: &dyn Any = allocator;
    any.is::<Pages>()
        || any.is::<PlacedPages>()
        || any.is::<Pool>()
        || allocator.upstream().is_some_and(|on| has_own_pages(&**on))
}

impl UpstreamPool {
    /// The pages that are freed with a block: only the whole ones if blocks may share pages.
    fn pages_of(&self, idle: &Idle) -> Range<usize> {
        let (page, start, end) = (os::page_size(), idle.address, idle.address + idle.size);
        if self.own_pages {
            return start - start % page..end.next_multiple_of(page);
        }
        let first = start.next_multiple_of(page);
        first..(end - end % page).max(first)
    }

    /// The local node of the calling thread.
    pub(super) fn local_node(&self) -> u8 {
        self.local_nodes.map_or(0, |local_nodes| local_nodes.look_here().local_node)
    }

    /// Whether an idle block may serve its local node: its pages are there, or placement is decided elsewhere.
    pub(super) fn is_local(&self, local_nodes: &LocalNodes, idle: &mut Idle) -> bool {
        // A fork copies pages, and a migration leaves none in place.
        let now = self.forks.load(Relaxed).wrapping_add(segment::moves()).max(1);
        let epoch = self.epoch.load(Relaxed).wrapping_add(1);
        let takes_any = || self.untold.load(Relaxed) || self.elsewhere.load(Relaxed) == epoch;
        if idle.seen == now || takes_any() {
            return true;
        }
        let look = || match local_nodes.policy_leads(idle.local_node)? {
            true => nodes::in_pages(local_nodes, idle.local_node, self.pages_of(idle)),
            false => Ok(Found::Absent),
        };
        match look() {
            Ok(Found::Local) => idle.seen = now,
            Ok(Found::Absent) => {}
            Ok(Found::Remote) if local_nodes.has_room(idle.local_node, idle.size) => return false,
            Ok(Found::Remote) => self.elsewhere.store(epoch, Relaxed),
            Err(_) => self.untold.store(true, Relaxed),
        }
        true
    }
}
