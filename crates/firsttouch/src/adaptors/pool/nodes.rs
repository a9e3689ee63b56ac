//! A pool's heaps, one for each NUMA node that has processors.
//!
//! A thread is served from the heap of the node that it runs on. A block that is freed on another node returns to its own
//! heap, so a node's threads recycle what they took fresh. Who writes a page first decides where that lies: mostly the
//! thread that asked for it.

use super::policy::SHARDS;
use crate::allocator::Allocator;
use crate::heap::growing::Span;
use crate::heap::{Heap, Held};
use crate::numa::topology::Topology;
use crate::os;

/// The processors of a machine.
pub struct Machine {
    /// The node of each processor, counted from 0 without gaps.
    pub node_of: Box<[u8]>,
    /// Returns the processor that runs this thread.
    pub current: fn() -> usize,
}

impl Machine {
    /// Returns this machine.
    pub fn this() -> Self {
        let mut node_of = vec![0; os::processors()];
        if os::only_node().is_none() {
            let nodes = Topology::read().nodes;
            let with_processors = nodes.iter().filter(|node| !node.processors.is_empty());
            for (number, node) in (0..=u8::MAX).zip(with_processors) {
                for processor in node.processors.iter() {
                    node_of.get_mut(processor).into_iter().for_each(|its| *its = number);
                }
            }
        }
        Self { node_of: node_of.into(), current: current_processor }
    }

    fn nodes(&self) -> usize {
        self.node_of.iter().max().map_or(1, |&last| usize::from(last) + 1)
    }
}

/// The model checker tries both of two processors.
fn current_processor() -> usize {
    #[cfg(shuttle)]
    return shuttle::rand::Rng::gen_range(&mut shuttle::rand::thread_rng(), 0..2);
    #[cfg(not(shuttle))]
    os::current_processor()
}

/// The node and the shard of a processor.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub node: u8,
    /// No shard serves two nodes.
    pub shard: usize,
}

/// The heaps of a pool.
pub(super) struct Heaps {
    /// By node.
    all: Box<[Heap]>,
    /// By processor.
    places: Box<[Place]>,
    current: fn() -> usize,
    shards_each: usize,
}

impl Heaps {
    pub(super) fn new(machine: Machine) -> Self {
        let (nodes, processors) = (machine.nodes(), machine.node_of.len());
        let shards_each = (processors.min(SHARDS) / nodes).max(1);
        let mut seen = vec![0; nodes];
        let place = |&node: &u8| {
            let of_node = &mut seen[usize::from(node)];
            let shard = usize::from(node) * shards_each + *of_node % shards_each;
            *of_node += 1;
            Place { node, shard }
        };
        Self {
            all: (0..nodes).map(|node| Heap::new(node as u8)).collect(),
            places: machine.node_of.iter().map(place).collect(),
            current: machine.current,
            shards_each,
        }
    }

    /// The number of shards.
    pub(super) fn shards(&self) -> usize {
        self.all.len() * self.shards_each
    }

    /// The place of this thread.
    #[inline]
    pub(super) fn here(&self) -> Place {
        self.place_of((self.current)())
    }

    #[inline]
    fn place_of(&self, processor: usize) -> Place {
        let unknown = || Place { node: 0, shard: processor % self.shards_each };
        self.places.get(processor).copied().unwrap_or_else(unknown)
    }

    /// The shards of a node.
    pub(super) fn shards_of(&self, node: u8) -> std::ops::Range<usize> {
        let first = usize::from(node) * self.shards_each;
        first..first + self.shards_each
    }

    /// The heap of a node.
    #[inline]
    pub(super) fn at(&self, node: u8) -> &Heap {
        &self.all[usize::from(node)]
    }

    /// The heap that a span belongs to.
    #[inline]
    pub(super) fn of(&self, span: Span) -> &Heap {
        self.at(span.segment.node)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Heap> + Clone {
        self.all.iter()
    }

    /// # Safety
    /// As for [`Heap::set_owner`].
    pub(super) unsafe fn set_owner(&self, owner: *const dyn Allocator) {
        // SAFETY: the owner stays where it is and outlives the heaps (`Pool::make`).
        self.all().for_each(|heap| unsafe { heap.set_owner(owner) });
    }

    /// The epoch of all heaps.
    #[inline]
    pub(super) fn epoch(&self) -> u8 {
        self.at(0).epoch()
    }

    pub(super) fn held(&self) -> Held {
        self.all().map(Heap::held).reduce(|a, b| a + b).unwrap_or_default()
    }

    /// Purges idle memory of at least this age; see [`Heap::purge`].
    pub(super) fn purge(&self, min_ticks: u8) -> usize {
        self.all().map(|heap| heap.purge(min_ticks, usize::MAX)).sum()
    }

    pub(super) fn purge_parts(&self, min_ticks: u8) -> usize {
        self.all().map(|heap| heap.purge_parts(min_ticks)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Firmware numbers processors node by node, or in turn.
    #[test]
    fn each_processor_has_a_shard_of_its_own() {
        for node_of in [[0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1]] {
            let heaps = Heaps::new(Machine { node_of: node_of.into(), current: || 0 });
            let places = (0..8).map(|processor| heaps.place_of(processor));
            assert!(places.clone().all(|place| heaps.shards_of(place.node).contains(&place.shard)));
            assert_eq!(places.map(|place| place.shard).collect::<BTreeSet<_>>().len(), 8, "{node_of:?}");
        }
    }
}
