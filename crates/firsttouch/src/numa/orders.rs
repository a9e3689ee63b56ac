//! A policy as it is applied to a range: the instructions for the kernel.

use crate::numa::axis::Axis;
use crate::os::{Mode, Nodes};
use std::iter;

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
    pub fn ranges(&self, size: usize, page: usize) -> impl Iterator<Item = (usize, usize, Nodes)> + '_ {
        let count = if self.slabs { self.nodes.len() } else { 1 };
        let axis = self.axis.unwrap_or(Axis::of_bytes(size));
        let mut next = 0;
        iter::from_fn(move || {
            let from = next;
            if from >= size {
                return None;
            }
            if count <= 1 {
                next = size;
                return Some((from, size, self.nodes));
            }
            let slab = axis.slab(from, count);
            while next < size && axis.slab(next, count) == slab {
                next = axis.edge(next, count).next_multiple_of(page).min(size);
            }
            Some((from, next - from, self.nodes.iter().nth(slab).map_or(Nodes::EMPTY, Nodes::one)))
        })
    }

    /// Returns the node of the page at `offset` of an array of `size` bytes, if the policy prescribes one.
    pub fn target(&self, offset: usize, size: usize) -> Option<usize> {
        let offset = offset.min(size.saturating_sub(1));
        let axis = self.axis.unwrap_or(Axis::of_bytes(size));
        self.slabs.then(|| self.nodes.iter().nth(axis.slab(offset, self.nodes.len().max(1)))).flatten()
    }
}
