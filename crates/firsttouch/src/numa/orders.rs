//! What the kernel is told of nodes.

use crate::numa::axis::Axis;
use crate::os::{Mode, Nodes};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    /// How nodes are chosen.
    pub mode: Mode,
    /// Among which.
    pub nodes: Nodes,
    /// Whether each node has one slab, in the order of their numbers.
    pub slabs: bool,
    /// The axis that slabs follow; the bytes of the range, where there is none.
    pub axis: Option<Axis>,
    /// Whether more nodes were asked for.
    pub clipped: bool,
}

impl Orders {
    /// The ranges of `size` bytes and the nodes of each; every one but the last ends at a multiple of `page`. A page
    /// lies where its first byte belongs.
    pub fn ranges(&self, size: usize, page: usize) -> Vec<(usize, usize, Nodes)> {
        if !self.slabs {
            return vec![(0, size, self.nodes)];
        }
        let (count, axis) = (self.nodes.len().max(1), self.axis.unwrap_or(Axis::of_bytes(size)));
        let (mut ranges, mut from): (Vec<(usize, usize, Nodes)>, _) = (Vec::new(), 0);
        while from < size {
            let to = axis.edge(from, count).next_multiple_of(page).min(size);
            let node = Nodes::one(self.nodes.iter().nth(axis.slab(from, count)).unwrap_or(0));
            match ranges.last_mut() {
                Some((_, len, last)) if *last == node => *len += to - from,
                _ => ranges.push((from, to - from, node)),
            }
            from = to;
        }
        ranges
    }

    /// The one node that the page at `offset` of an array of `size` bytes belongs on; nothing where any will do.
    pub fn target(&self, offset: usize, size: usize) -> Option<usize> {
        let offset = offset.min(size.saturating_sub(1));
        let axis = self.axis.unwrap_or(Axis::of_bytes(size));
        self.slabs.then(|| self.nodes.iter().nth(axis.slab(offset, self.nodes.len().max(1)))).flatten()
    }
}
