//! NUMA policies: the nodes that the pages of an array come from, under the names that `numactl` uses; their restriction by
//! the cpuset and the policy of the thread; and the slabs that they cut arrays into.

use crate::numa::topology::Topology;
use crate::os::{self, Mode, Nodes};
use crate::reason::Reason;
use std::cell::Cell;
use std::{fmt, iter};

/// An axis of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Bytes from one item to the next.
    pub stride: usize,
    /// Number of items.
    pub items: usize,
}

impl Axis {
    /// Returns the axis of an array of bytes.
    pub fn of_bytes(size: usize) -> Self {
        Self { stride: 1, items: size }
    }

    /// Returns the slab, of `count`, that contains the byte at `offset`.
    pub fn slab(&self, offset: usize, count: usize) -> usize {
        let item = offset / self.stride.max(1) % self.items.max(1);
        item * count / self.items.max(1)
    }

    /// Returns the offset of the first byte after `offset` that may be in another slab.
    pub fn edge(&self, offset: usize, count: usize) -> usize {
        let (stride, items) = (self.stride.max(1), self.items.max(1));
        let first = offset - offset % (stride * items);
        // A slab begins at item at * items / count, rounded up.
        let next = ((self.slab(offset, count) + 1) * items).div_ceil(count.max(1));
        first + next.min(items) * stride
    }
}

thread_local! {
    static EXPECTED: Cell<Option<(usize, Axis)>> = const { Cell::new(None) };
}

/// Announces that this thread will request blocks of the given size for arrays with this axis; `None` ends that.
pub fn expect_axis(next: Option<(usize, Axis)>) {
    let _ = EXPECTED.try_with(|cell| cell.set(next)); // a thread that is exiting creates no arrays
}

/// Returns the axis announced for a block of `size` bytes.
pub fn expected_axis(size: usize) -> Option<Axis> {
    let (bytes, axis) = EXPECTED.try_with(Cell::get).ok().flatten()?;
    (bytes == size).then_some(axis)
}

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

    /// Returns the node of all pages, if there is one.
    pub fn one_node(&self) -> Option<usize> {
        self.nodes.iter().next().filter(|_| self.nodes.len() == 1)
    }

    /// Returns the node of the page at `offset` of an array of `size` bytes, if the policy prescribes one.
    pub fn target(&self, offset: usize, size: usize) -> Option<usize> {
        let offset = offset.min(size.saturating_sub(1));
        let axis = self.axis.unwrap_or(Axis::of_bytes(size));
        self.slabs.then(|| self.nodes.iter().nth(axis.slab(offset, self.nodes.len().max(1)))).flatten()
    }
}

/// The nodes of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All nodes with memory that may be used.
    All,
    /// The given nodes.
    These(Nodes),
}

/// A NUMA policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Only from these nodes.
    Bind(Which),
    /// From this node, and from others when it is full.
    Preferred(usize),
    /// From these nodes in turn, page by page.
    Interleave(Which),
    /// From the node of the processor that touches a page first.
    Local,
    /// In equal slabs along an axis, one for each node, as the first touch of a loop with a static schedule would place
    /// them. Negative axes count from the last.
    Blocked(isize),
}

impl Policy {
    /// Parses a policy: a node number, `bind:0-1`, `preferred:1`, `interleave:all`, `local`, or `blocked:0`.
    ///
    /// # Errors
    /// A message that quotes the text and lists what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused = |why: &str| {
            format!(
                "{text:?} is not a NUMA policy{why}: give a node number, like 1, or \"bind:0-1\", \"preferred:1\", \
                 \"interleave:all\", \"local\" or \"blocked:0\" (slabs along axis 0)"
            )
        };
        let clean = text.trim().to_ascii_lowercase();
        let (name, rest) = clean.split_once(':').map_or((clean.as_str(), None), |(a, b)| (a.trim(), Some(b.trim())));
        let which = || match rest {
            None => Err(refused(" without nodes")),
            Some("all") => Ok(Which::All),
            Some(list) => Nodes::parse(list)
                .filter(|nodes| !nodes.is_empty())
                .map(Which::These)
                .ok_or_else(|| refused(&format!(" ({list:?} is not a list of nodes, like 0-1 or 0,2)"))),
        };
        let node = || {
            let digits = rest.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            digits.and_then(|text| text.parse().ok()).ok_or_else(|| refused(" (it takes one node)"))
        };
        match name {
            "bind" => which().map(Self::Bind),
            "interleave" => which().map(Self::Interleave),
            "preferred" => node().map(Self::Preferred),
            "blocked" => {
                let axis = rest.filter(|text| !text.starts_with('+')).and_then(|text| text.parse().ok());
                axis.map(Self::Blocked).ok_or_else(|| refused(" (it takes one axis)"))
            }
            "local" if rest.is_none() => Ok(Self::Local),
            _ => match Nodes::parse(name) {
                Some(node) if node.len() == 1 && rest.is_none() => Ok(Self::Bind(Which::These(node))),
                _ => Err(refused("")),
            },
        }
    }

    /// Checks that the machine has the nodes of the policy.
    ///
    /// # Errors
    /// A message that names the missing node and the existing ones.
    pub fn check(&self, machine: &Topology) -> Result<(), String> {
        let named = match self {
            Self::Bind(Which::These(nodes)) | Self::Interleave(Which::These(nodes)) => *nodes,
            Self::Preferred(node) if *node < Nodes::ROOM => Nodes::one(*node),
            Self::Preferred(node) => return Err(machine.lacks(*node).unwrap_or_default()),
            _ => Nodes::EMPTY,
        };
        named.iter().find_map(|node| machine.lacks(node)).map_or(Ok(()), Err)
    }

    /// Restricts the policy to what `outer` allows.
    ///
    /// # Errors
    /// The reason, if nothing of it is allowed.
    pub fn within(&self, outer: &Outer) -> Result<Orders, Reason> {
        let may = outer.nodes();
        if may.is_empty() {
            return Err(outer.reason(&outer.with_memory));
        }
        let of = |which: &Which| match which {
            Which::All => Ok((may, false)),
            Which::These(nodes) => match nodes.and(&may) {
                rest if rest.is_empty() => Err(outer.reason(nodes)),
                rest => Ok((rest, rest != *nodes)),
            },
        };
        let (mode, (nodes, clipped)) = match self {
            Self::Bind(which) => (Mode::Bind, of(which)?),
            Self::Interleave(which) => (Mode::Interleave, of(which)?),
            // With `bind`, the kernel prefers the nearest node of the set; `local` would go beyond the set.
            Self::Local if outer.bounds.is_some() => (Mode::Bind, (may, false)),
            Self::Local => (Mode::Local, (may, false)),
            // When the node is full, the kernel would go beyond the outer policy.
            Self::Preferred(_) if outer.bounds.is_some() => return Err(Reason::OuterPolicy),
            Self::Preferred(node) => (Mode::Preferred, of(&Which::These(Nodes::one(*node)))?),
            Self::Blocked(_) => (Mode::Bind, (may, false)),
        };
        Ok(Orders { mode, nodes, slabs: matches!(self, Self::Blocked(_)), axis: None, clipped })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(which) => write!(f, "bind:{which}"),
            Self::Preferred(node) => write!(f, "preferred:{node}"),
            Self::Interleave(which) => write!(f, "interleave:{which}"),
            Self::Local => write!(f, "local"),
            Self::Blocked(axis) => write!(f, "blocked:{axis}"),
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => write!(f, "all"),
            Self::These(nodes) => write!(f, "{nodes}"),
        }
    }
}

/// The restrictions from outside: the cpuset, and the policy of the thread (set by numactl or Slurm) if it names a set of
/// nodes.
#[derive(Clone, Copy, Debug)]
pub struct Outer {
    /// The nodes with memory.
    pub with_memory: Nodes,
    /// The nodes that the cpuset allows.
    pub allowed: Nodes,
    /// The nodes that the policy of the thread is restricted to.
    pub bounds: Option<Nodes>,
}

impl Outer {
    /// Returns the current restrictions of this thread.
    pub fn now(with_memory: Nodes) -> Self {
        Self {
            with_memory,
            allowed: os::allowed_nodes().unwrap_or(with_memory),
            bounds: os::thread_policy().ok().and_then(|policy| policy.bounds()),
        }
    }

    /// Returns the nodes that memory may come from.
    pub fn nodes(&self) -> Nodes {
        let allowed = self.with_memory.and(&self.allowed);
        self.bounds.map_or(allowed, |bounds| allowed.and(&bounds))
    }

    /// Returns why none of these nodes may be used.
    pub fn reason(&self, nodes: &Nodes) -> Reason {
        if nodes.and(&self.allowed).is_empty() { Reason::Cpuset } else { Reason::OuterPolicy }
    }
}

#[cfg(test)]
mod tests {
    use super::{Axis, Orders, Outer, Policy, expect_axis, expected_axis};
    use crate::os::{Mode, Nodes};
    use crate::reason::Reason;

    fn nodes(text: &str) -> Nodes {
        Nodes::parse(text).unwrap()
    }

    fn outer(allowed: &str, bounds: Option<&str>) -> Outer {
        Outer { with_memory: nodes("0-3"), allowed: nodes(allowed), bounds: bounds.map(nodes) }
    }

    fn orders(text: &str, outer: &Outer) -> Result<Orders, Reason> {
        Policy::parse(text).unwrap().within(outer)
    }

    #[test]
    fn policies_round_trip() {
        for text in [
            "bind:0-1",
            "bind:all",
            "preferred:1",
            "interleave:all",
            "interleave:0,2",
            "local",
            "blocked:0",
            "blocked:-1",
        ] {
            assert_eq!(Policy::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Policy::parse(" 1 ").unwrap().to_string(), "bind:1");
        assert_eq!(Policy::parse("Interleave: 0-1").unwrap().to_string(), "interleave:0-1");
    }

    #[test]
    fn invalid_policies_are_rejected() {
        for text in [
            "",
            "bnid:0",
            "bind",
            "bind:",
            "bind:x",
            "bind:1-0",
            "bind:-1",
            "-1",
            "preferred",
            "preferred:0-1",
            "local:1",
            "blocked",
            "blocked:x",
            "blocked:--1",
            "blocked:+1",
            "interleave",
            "1024",
            "99999999999999999999",
            "1.5",
            "+1",
            "default",
        ] {
            let message = Policy::parse(text).expect_err(text);
            assert!(message.contains(&format!("{text:?}")) && message.contains("\"bind:0-1\""), "{message}");
        }
    }

    #[test]
    fn outer_restrictions_are_never_widened() {
        let free = outer("0-3", None);
        assert_eq!(orders("bind:1-2", &free).unwrap().nodes, nodes("1-2"));
        assert_eq!(orders("interleave:all", &free).unwrap().nodes, nodes("0-3"));
        assert_eq!(orders("local", &free).unwrap().mode, Mode::Local);

        let cpuset = outer("0-1", None);
        assert_eq!(orders("bind:2", &cpuset), Err(Reason::Cpuset));
        let clipped = orders("bind:1-2", &cpuset).unwrap();
        assert_eq!((clipped.nodes, clipped.clipped), (nodes("1"), true));
        assert_eq!(orders("interleave:all", &cpuset).unwrap().nodes, nodes("0-1"));

        let numactl = outer("0-3", Some("0,3"));
        assert_eq!(orders("bind:1", &numactl), Err(Reason::OuterPolicy));
        assert_eq!(orders("preferred:0", &numactl), Err(Reason::OuterPolicy));
        let local = orders("local", &numactl).unwrap();
        assert_eq!((local.mode, local.nodes), (Mode::Bind, nodes("0,3")));
        assert_eq!(orders("blocked:0", &numactl).unwrap().nodes, nodes("0,3"));
    }

    #[test]
    fn where_no_node_is_left_nothing_is_granted() {
        for policy in ["bind:all", "bind:0", "interleave:all", "local", "preferred:0", "blocked:0"] {
            assert_eq!(orders(policy, &outer("0-1", Some("2"))), Err(Reason::OuterPolicy), "{policy}");
            assert_eq!(orders(policy, &outer("7", None)), Err(Reason::Cpuset), "{policy}");
        }
    }

    #[test]
    fn slabs_cover_everything_and_end_at_pages() {
        let four = orders("blocked:0", &outer("0-3", None)).unwrap();
        for (size, page) in [(4096, 4096), (8192, 4096), (1 << 20, 4096), ((1 << 20) + 4096, 4096), (5 << 21, 2 << 20)]
        {
            let mut at = 0;
            for (from, len, node) in four.ranges(size, page) {
                assert_eq!((from, from % page, node.len()), (at, 0, 1));
                at += len;
            }
            assert_eq!(at, size);
        }
        assert_eq!(four.ranges(1 << 20, 4096).count(), 4);
        let one = orders("bind:1", &outer("0-3", None)).unwrap();
        assert_eq!(one.ranges(8192, 4096).collect::<Vec<_>>(), [(0, 8192, nodes("1"))]);
    }

    #[test]
    fn slabs_along_an_inner_axis_return_in_every_row() {
        let two = orders("blocked:1", &outer("0-1", None)).unwrap();
        let rows = Orders { axis: Some(Axis { stride: 4096, items: 6 }), ..two };
        let lengths: Vec<_> = rows.ranges(4 * 6 * 4096, 4096).map(|(_, len, node)| (len / 4096, node)).collect();
        assert_eq!(lengths, [(3, nodes("0")), (3, nodes("1"))].repeat(4));
        for page in 0..24 {
            assert_eq!(rows.target(page * 4096 + 100, 24 * 4096), Some(page % 6 / 3));
        }
        // Items smaller than a page: a page lies where its first byte belongs.
        let small = Orders { axis: Some(Axis { stride: 8, items: 1024 }), ..two };
        let ranges: Vec<_> = small.ranges(4 * 8192, 4096).collect();
        assert_eq!(ranges.len(), 8);
        assert!(
        ranges
            .iter()
            .all(|&(from, len, node)| len == 4096 && small.target(from, 32768) == Some(node.iter().next().unwrap()))
    );
        let tiny = Orders { axis: Some(Axis { stride: 1, items: 2 }), ..two };
        assert_eq!(tiny.ranges(8192, 4096).collect::<Vec<_>>(), [(0, 8192, nodes("0"))]);
        // A look at the first few takes no time and no memory, however many there are.
        assert_eq!(rows.ranges(1 << 46, 4096).nth(4096), Some((4096 * 3 * 4096, 3 * 4096, nodes("0"))));
    }

    #[test]
    fn slabs_have_equal_shares() {
        for (stride, items, count) in [(8, 10, 3), (24, 7, 2), (1, 4096, 4), (800, 2, 4), (64, 1, 3)] {
            let (axis, size) = (Axis { stride, items }, stride * items * 3);
            for offset in 0..size {
                let edge = axis.edge(offset, count);
                assert!(edge > offset && edge % stride == 0);
                let next = (offset..edge).map(|at| axis.slab(at, count));
                assert!(next.eq(std::iter::repeat_n(axis.slab(offset, count), edge - offset)));
                let turn = edge % (stride * items) == 0;
                assert!(turn || axis.slab(edge, count) != axis.slab(offset, count));
            }
        }
    }

    #[test]
    fn only_blocks_of_the_announced_size_have_the_axis() {
        let axis = Axis { stride: 8, items: 4 };
        expect_axis(Some((320, axis)));
        assert_eq!((expected_axis(320), expected_axis(321)), (Some(axis), None));
        assert_eq!(std::thread::spawn(|| expected_axis(320)).join().unwrap(), None);
        expect_axis(None);
        assert_eq!(expected_axis(320), None);
    }
}
