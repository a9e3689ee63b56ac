//! Local nodes: the nodes whose memory is local to a processor, on machines with several nodes.
//!
//! A node with memory and processors is local to these. The local node of a processor on a node without memory is the
//! nearest node with memory; if several are equally near they form one local node, as only the kernel knows which of them
//! it uses.

use crate::numa::topology::{Node, Topology};
use crate::os::{self, Errno, Nodes, Pretence};
use crate::sync::first::First;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The number of shards of all local nodes together.
const SHARDS: usize = 64;
const UNKNOWN: u32 = u32::MAX;

/// The local node and the shard of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub local_node: u8,
    /// One of the shards of the pool; each serves one local node.
    pub shard: usize,
}

/// The local nodes of the machine.
pub(crate) struct LocalNodes {
    nodes: Vec<Nodes>,
    /// The nodes of all local nodes.
    all: Nodes,
    shards_each: usize,
    /// The place of each processor: the local node in the upper 16 bits, the shard in the lower. Unknown for offline
    /// processors.
    places: Box<[AtomicU32]>,
    /// Whether pages may be huge without advice, so that they reach into memory that was not allocated.
    huge_everywhere: bool,
    pretence: Option<Pretence>,
}

impl LocalNodes {
    /// Returns the local nodes of the machine; `None` if it has only one, or the kernel does not tell.
    pub(crate) fn of_the_machine() -> Option<&'static Self> {
        static LOCAL_NODES: First<Option<LocalNodes>> = First::new();
        if let Some(pretence) = os::pretence() {
            return Some(Box::leak(Box::new(Self::pretended(pretence))));
        }
        LOCAL_NODES.get_or_make(|| os::only_node().is_none().then(|| Self::read(&Topology::read()))?).as_ref()
    }

    fn read(machine: &Topology) -> Option<Self> {
        let with_memory = machine.with_memory();
        let may = os::allowed_nodes().map_or(with_memory, |allowed| allowed.and(&with_memory));
        let mut nodes: Vec<Nodes> = Vec::new();
        for node in machine.nodes.iter().filter(|node| !node.processors.is_empty()) {
            let near = nearest(machine, &may, node);
            if !near.is_empty() && !nodes.contains(&near) && nodes.len() < usize::from(u8::MAX) {
                nodes.push(near);
            }
        }
        let huge = os::system_file("/sys/kernel/mm/transparent_hugepage/enabled");
        let local_nodes = Self::new(nodes, os::processors(), huge.is_some_and(|text| text.contains("[always]")), None);
        local_nodes.learn(machine);
        (local_nodes.nodes.len() > 1).then_some(local_nodes)
    }

    fn pretended(pretence: Pretence) -> Self {
        let nodes: Vec<Nodes> = (0..pretence.nodes).map(Nodes::one).collect();
        let local_nodes = Self::new(nodes, pretence.nodes.max(os::processors()), true, Some(pretence));
        (0..local_nodes.places.len()).for_each(|processor| local_nodes.put(processor, processor % pretence.nodes, 0));
        local_nodes
    }

    fn new(nodes: Vec<Nodes>, processors: usize, huge_everywhere: bool, pretence: Option<Pretence>) -> Self {
        let all = nodes.iter().flat_map(|local_node| local_node.iter().collect::<Vec<_>>()).collect();
        let shards_each = (SHARDS.min(processors) / nodes.len().max(1)).max(1);
        let places = (0..processors).map(|_| AtomicU32::new(UNKNOWN)).collect();
        Self { nodes, all, shards_each, places, huge_everywhere, pretence }
    }

    fn put(&self, processor: usize, local_node: usize, rank: usize) {
        let shard = local_node * self.shards_each + rank % self.shards_each;
        if let Some(place) = self.places.get(processor) {
            place.store((local_node as u32) << 16 | shard as u32, Relaxed);
        }
    }

    /// Records the places of the processors that are online now.
    fn learn(&self, machine: &Topology) {
        for node in &machine.nodes {
            let near = nearest(machine, &self.all, node);
            let equal = self.nodes.iter().position(|local_node| *local_node == near);
            let local_node =
                equal.or_else(|| self.nodes.iter().position(|local_node| !local_node.and(&near).is_empty()));
            for (rank, processor) in node.processors.iter().enumerate() {
                self.put(processor, local_node.unwrap_or(0), rank);
            }
        }
    }

    /// Returns the place of the processor that runs this thread.
    #[inline]
    pub(crate) fn here(&self) -> Place {
        let pretended = self.pretence.and_then(|_| os::pretended_processor());
        let processor = pretended.unwrap_or_else(os::current_processor);
        match self.places.get(processor).map_or(UNKNOWN, |place| place.load(Relaxed)) {
            UNKNOWN => Place { local_node: 0, shard: 0 },
            place => Place { local_node: (place >> 16) as u8, shard: (place & 0xffff) as usize },
        }
    }

    /// Returns the same, after determining the place of a processor that was offline before.
    pub(crate) fn look_here(&self) -> Place {
        let processor = os::current_processor();
        if self.places.get(processor).is_some_and(|place| place.load(Relaxed) == UNKNOWN) {
            self.put(processor, 0, 0); // stays so if the kernel does not tell
            self.learn(&Topology::read());
        }
        self.here()
    }

    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn shards(&self) -> usize {
        self.nodes.len() * self.shards_each
    }

    /// Returns the local node that a shard serves.
    pub(crate) fn of_shard(&self, shard: usize) -> u8 {
        (shard / self.shards_each) as u8
    }

    /// Returns whether pages of unallocated memory may be present because a neighbour's huge page reaches into it.
    pub(crate) fn may_reach(&self, huge: bool) -> bool {
        huge || self.huge_everywhere
    }

    /// Returns whether `node` is local to other processors and not part of `local_node`. Nodes that came online later are
    /// local to none.
    pub(crate) fn is_remote(&self, local_node: u8, node: i32) -> bool {
        let node = usize::try_from(node).unwrap_or(usize::MAX);
        self.all.contains(node) && !self.nodes[usize::from(local_node)].contains(node)
    }

    /// Returns whether the policy of this thread takes memory touched at `local_node` from there.
    ///
    /// # Errors
    /// If the system does not tell.
    pub(crate) fn policy_leads(&self, local_node: u8) -> Result<bool, Errno> {
        if self.pretence.is_some() {
            return Ok(true);
        }
        Ok(os::thread_policy()?.leads_to(&self.nodes[usize::from(local_node)]))
    }

    /// Returns whether `local_node` is in the cpuset of this thread and has `bytes` of free memory.
    pub(crate) fn has_room(&self, local_node: u8, bytes: usize) -> bool {
        if self.pretence.is_some() {
            return true;
        }
        let nodes = &self.nodes[usize::from(local_node)];
        let allowed = os::allowed_nodes().map_or(*nodes, |allowed| allowed.and(nodes));
        allowed.iter().any(|node| os::free_memory_of(node).is_none_or(|(free, kept)| free > kept + bytes))
    }

    /// Queries the nodes of pages as [`os::nodes_of`] does, or simulates them.
    pub(crate) fn nodes_of(&self, pages: &[usize], nodes: &mut [i32]) -> Result<(), Errno> {
        os::nodes_of(pages, nodes)?;
        if let Some(pretence) = self.pretence {
            let there = pages.iter().zip(nodes).filter(|(_, node)| **node >= 0);
            there.for_each(|(&page, node)| *node = (pretence.node_of)(page) as i32);
        }
        Ok(())
    }
}

/// Returns the nodes among `may` that are nearest to a node.
fn nearest(machine: &Topology, may: &Nodes, node: &Node) -> Nodes {
    if may.contains(node.number) {
        return Nodes::one(node.number);
    }
    let others = || machine.nodes.iter().zip(&node.distances).filter(|(other, _)| may.contains(other.number));
    let Some(least) = others().map(|(_, &distance)| distance).min() else { return *may };
    others().filter(|(_, distance)| **distance == least).map(|(other, _)| other.number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numa::topology::NodeMemory;

    fn machine(distances: [[usize; 3]; 3], with_memory: &[usize]) -> Topology {
        let memory = NodeMemory { total: 1, free: 1, available: 1 };
        let node = |number: usize| Node {
            number,
            processors: [2 * number, 2 * number + 1].into_iter().collect(),
            memory: with_memory.contains(&number).then_some(memory),
            distances: distances[number].to_vec(),
        };
        Topology { nodes: (0..3).map(node).collect(), possible: Nodes::parse("0-2").unwrap() }
    }

    #[test]
    fn a_node_without_memory_has_the_nearest_that_has_some() {
        let near = |distances: [usize; 3]| {
            let machine = machine([[10, 20, 20], [20, 10, 20], distances], &[0, 1]);
            nearest(&machine, &machine.with_memory(), &machine.nodes[2]).to_string()
        };
        assert_eq!(
            (near([20, 30, 10]), near([30, 20, 10]), near([20, 20, 10])),
            ("0".into(), "1".into(), "0-1".into())
        );
    }

    #[test]
    fn each_shard_serves_one_local_node() {
        let machine = machine([[10, 20, 20], [20, 10, 20], [20, 20, 10]], &[0, 2]);
        let local_nodes =
            LocalNodes::new(vec![Nodes::one(0), Nodes::one(2), Nodes::parse("0,2").unwrap()], 8, false, None);
        local_nodes.learn(&machine);
        let places: Vec<u32> = local_nodes.places.iter().map(|place| place.load(Relaxed)).collect();
        let local_node = |processor: usize| local_nodes.of_shard(places[processor] as usize & 0xffff);
        assert_eq!((0..6).map(local_node).collect::<Vec<_>>(), [0, 0, 2, 2, 1, 1]);
        assert_eq!((0..6).map(|at| places[at] >> 16).collect::<Vec<_>>(), [0, 0, 2, 2, 1, 1]);
        assert_eq!((places[6], local_nodes.shards()), (UNKNOWN, 6));
        let remote =
            [(0, 2), (0, 1), (2, 0), (0, -2)].map(|(local_node, node)| local_nodes.is_remote(local_node, node));
        assert_eq!(remote, [true, false, false, false]);
    }
}
