//! The parts of a pool that serve a processor: a shard with the spans freed last there, and the heap of its NUMA node.
//!
//! A block that is freed on another node returns to its own heap, so a node's threads recycle memory that they took fresh. The
//! first thread to write a page decides where it lies: mostly the one that asked for it.

use super::meter::PoolCounts;
use crate::heap::Span;
use crate::heap::segment::RegionKind;
use crate::numa::{Topology, only_node};
use crate::os;
use crate::policy::{SHARD_SPANS, SHARD_WASTE, SHARDS};

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
        if only_node().is_none() {
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

    /// The processor that runs this thread.
    #[inline]
    pub(super) fn here(&self) -> Processor {
        let processor = (self.current)();
        match self.node_of.get(processor) {
            Some(&node) => Processor { node, shard: processor % SHARDS },
            None => Processor { node: self.node_of[0], shard: 0 },
        }
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
pub(super) struct Processor {
    pub node: u8,
    pub shard: usize,
}

/// The spans freed last on a processor, newest last: warm in its cache, and handed out again unchanged. They count as used, until
/// they go to their heaps and are joined with their neighbors.
pub(super) struct Shard {
    /// With capacity for all, so that a free allocates nothing.
    recent: Vec<Span>,
    pub counts: PoolCounts,
}

impl Shard {
    pub(super) fn new() -> Self {
        Self { recent: Vec::with_capacity(SHARD_SPANS), counts: PoolCounts::default() }
    }

    /// Takes the warmest span of `kind` and `node` that holds `bytes`, wastes little, and begins at a multiple of `align`.
    #[inline]
    pub(super) fn take(&mut self, node: u8, kind: RegionKind, bytes: usize, align: usize) -> Option<Span> {
        let suits = |span: &Span| {
            let (has, segment) = (span.bytes(), span.segment);
            let holds = segment.kind == kind && segment.node == node && has >= bytes;
            holds && has - bytes < bytes / SHARD_WASTE + segment.unit() && span.address() & (align - 1) == 0
        };
        let at = self.recent.iter().rposition(suits)?;
        Some(self.recent.remove(at))
    }

    /// Remembers a freed span; removes and returns the oldest if it is full.
    #[inline]
    pub(super) fn put(&mut self, span: Span) -> Option<Span> {
        let oldest = (self.recent.len() == SHARD_SPANS).then(|| self.recent.remove(0));
        self.recent.push(span);
        oldest
    }

    /// Removes and returns the oldest span.
    pub(super) fn pop_oldest(&mut self) -> Option<Span> {
        (!self.recent.is_empty()).then(|| self.recent.remove(0))
    }

    /// Bytes of the remembered spans.
    pub(super) fn bytes(&self) -> usize {
        self.recent.iter().map(Span::bytes).sum()
    }
}
