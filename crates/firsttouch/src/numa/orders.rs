//! A policy as it is applied to a range: the instructions for the kernel.

use crate::numa::axis::Axis;
use crate::os::{Mode, Nodes};

/// A policy within the limits of the cpuset and the outer policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    /// How nodes are chosen.
    pub mode: Mode,
    /// The nodes to choose from.
    pub nodes: Nodes,
    /// Whether each node gets one slab, in the order of their numbers.
    pub slabs: bool,
    /// The axis along which slabs are cut; `None` for the bytes of the range.
    pub axis: Option<Axis>,
    /// Whether more nodes were requested.
    pub clipped: bool,
}

impl Orders {
    /// Splits `size` bytes into ranges (offset, length, nodes). All but the last end at a multiple of `page`; a page belongs
    /// to the slab of its first byte.
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

    /// Returns the node of the page at `offset` of an array of `size` bytes, if the policy prescribes one.
    pub fn target(&self, offset: usize, size: usize) -> Option<usize> {
        let offset = offset.min(size.saturating_sub(1));
        let axis = self.axis.unwrap_or(Axis::of_bytes(size));
        self.slabs.then(|| self.nodes.iter().nth(axis.slab(offset, self.nodes.len().max(1)))).flatten()
    }
}
