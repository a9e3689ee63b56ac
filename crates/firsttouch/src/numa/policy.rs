//! NUMA policies: the nodes that the pages of an array come from, under the names that `numactl` uses; their restriction by
//! the cpuset and the policy of the thread; and the parts that they cut blocks into.

use crate::numa::topology::Topology;
use crate::os::{self, Mode, Nodes};
use crate::reason::Reason;
use std::fmt;

/// A policy within the limits of the cpuset and the outer policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    /// How nodes are chosen.
    pub mode: Mode,
    /// The nodes to choose from.
    pub nodes: Nodes,
    /// Whether each node gets one part of the block, in the order of their numbers.
    pub blocked: bool,
    /// Whether more nodes were requested.
    pub clipped: bool,
}

impl Orders {
    /// Splits `size` bytes into ranges (offset, length, nodes). All but the last end at a multiple of `page`; a page belongs
    /// to the part of its first byte.
    pub fn ranges(&self, size: usize, page: usize) -> impl Iterator<Item = (usize, usize, Nodes)> + '_ {
        let count = if self.blocked { self.nodes.len() } else { 1 };
        let edge = move |part: usize| (part * size).div_ceil(count).next_multiple_of(page).min(size);
        (0..count).filter_map(move |part| {
            let (from, to) = (edge(part), edge(part + 1));
            let nodes = self.nodes.iter().nth(part).filter(|_| self.blocked).map_or(self.nodes, Nodes::one);
            (from < to).then_some((from, to - from, nodes))
        })
    }

    /// Returns the node of all pages, if there is one.
    pub fn one_node(&self) -> Option<usize> {
        self.nodes.iter().next().filter(|_| self.nodes.len() == 1)
    }

    /// Returns the node of the page at `offset` of a block of `size` bytes, if the policy prescribes one.
    pub fn target(&self, offset: usize, size: usize) -> Option<usize> {
        let part = offset.min(size.saturating_sub(1)) * self.nodes.len() / size.max(1);
        self.nodes.iter().nth(part).filter(|_| self.blocked)
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
    /// In equal parts, one for each node, as the first touch of a loop with a static schedule would place them.
    Blocked,
}

impl Policy {
    /// Parses a policy: a node number, `bind:0-1`, `preferred:1`, `interleave:all`, `local`, or `blocked`.
    ///
    /// # Errors
    /// A message that quotes the text and lists what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused = |why: &str| {
            format!(
                "{text:?} is not a NUMA policy{why}: give a node number, like 1, or \"bind:0-1\", \"preferred:1\", \
                 \"interleave:all\", \"local\" or \"blocked\" (equal parts)"
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
            "blocked" if rest.is_none() => Ok(Self::Blocked),
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
            Self::Blocked => (Mode::Bind, (may, false)),
        };
        Ok(Orders { mode, nodes, blocked: *self == Self::Blocked, clipped })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(which) => write!(f, "bind:{which}"),
            Self::Preferred(node) => write!(f, "preferred:{node}"),
            Self::Interleave(which) => write!(f, "interleave:{which}"),
            Self::Local => write!(f, "local"),
            Self::Blocked => write!(f, "blocked"),
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
    use super::{Orders, Outer, Policy};
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
        for text in ["bind:0-1", "bind:all", "preferred:1", "interleave:all", "interleave:0,2", "local", "blocked"] {
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
            "blocked:0",
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
        assert_eq!(orders("blocked", &numactl).unwrap().nodes, nodes("0,3"));
    }

    #[test]
    fn where_no_node_is_left_nothing_is_granted() {
        for policy in ["bind:all", "bind:0", "interleave:all", "local", "preferred:0", "blocked"] {
            assert_eq!(orders(policy, &outer("0-1", Some("2"))), Err(Reason::OuterPolicy), "{policy}");
            assert_eq!(orders(policy, &outer("7", None)), Err(Reason::Cpuset), "{policy}");
        }
    }

    #[test]
    fn parts_cover_everything_and_end_at_pages() {
        let four = orders("blocked", &outer("0-3", None)).unwrap();
        for (size, page) in [(4096, 4096), (8192, 4096), (1 << 20, 4096), ((1 << 20) + 4096, 4096), (5 << 21, 2 << 20)]
        {
            let mut at = 0;
            for (from, len, node) in four.ranges(size, page) {
                assert_eq!((from, from % page, node.len()), (at, 0, 1));
                assert!((from..from + len).step_by(page).all(|byte| four.target(byte, size) == node.iter().next()));
                at += len;
            }
            assert_eq!(at, size);
        }
        assert_eq!(four.ranges(1 << 20, 4096).count(), 4);
        let one = orders("bind:1", &outer("0-3", None)).unwrap();
        assert_eq!(one.ranges(8192, 4096).collect::<Vec<_>>(), [(0, 8192, nodes("1"))]);
        assert_eq!(one.target(0, 8192), None);
    }
}
