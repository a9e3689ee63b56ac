//! The node whose memory a block gets, on machines with several: the helper takes it from where the program would have.

use crate::os::{self, Nodes};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static SEVERAL: AtomicBool = AtomicBool::new(false);

/// Asks the system whether there are several nodes.
pub(super) fn prepare() {
    SEVERAL.store(os::only_node().is_none(), Relaxed);
}

/// On a machine with one node.
pub(super) const ANY: usize = usize::MAX;

/// The node from which the calling thread gets its pages. `None` if it gets them from several, or must get them from some:
/// the helper's own policy only prefers one.
pub(super) fn of_this_thread() -> Option<usize> {
    if !SEVERAL.load(Relaxed) {
        return Some(ANY);
    }
    let (node, policy) = (os::current_node(), os::thread_policy().ok()?);
    (policy.bounds().is_none() && policy.leads_to(&Nodes::one(node))).then_some(node)
}

/// What the helper prefers.
pub(super) struct Preferred(usize);

impl Preferred {
    pub(super) fn new() -> Self {
        Self(ANY)
    }

    /// Prefers a node; whether that is so.
    pub(super) fn follow(&mut self, node: usize) -> bool {
        if self.0 != node && os::prefer_node(node).is_ok() {
            self.0 = node;
        }
        self.0 == node
    }
}
