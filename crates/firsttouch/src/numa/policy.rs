//! NUMA policies: the nodes that the pages of an array come from, under the names that `numactl` uses, and their restriction
//! by the cpuset and the policy of the thread.

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
    /// Whether more nodes were requested.
    pub clipped: bool,
}

impl Orders {
    /// Returns the node of all pages, if there is one.
    pub fn one_node(&self) -> Option<usize> {
        self.nodes.iter().next().filter(|_| self.nodes.len() == 1)
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
}

impl Policy {
    /// Parses a policy: a node number, `bind:0-1`, `preferred:1`, `interleave:all` or `local`.
    ///
    /// # Errors
    /// A message that quotes the text and lists what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused = |why: &str| {
            format!(
                "{text:?} is not a NUMA policy{why}: give a node number, like 1, or \"bind:0-1\", \"preferred:1\", \
                 \"interleave:all\" or \"local\""
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
        };
        Ok(Orders { mode, nodes, clipped })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(which) => write!(f, "bind:{which}"),
            Self::Preferred(node) => write!(f, "preferred:{node}"),
            Self::Interleave(which) => write!(f, "interleave:{which}"),
            Self::Local => write!(f, "local"),
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
        for text in ["bind:0-1", "bind:all", "preferred:1", "interleave:all", "interleave:0,2", "local"] {
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
    }

    #[test]
    fn where_no_node_is_left_nothing_is_granted() {
        for policy in ["bind:all", "bind:0", "interleave:all", "local", "preferred:0"] {
            assert_eq!(orders(policy, &outer("0-1", Some("2"))), Err(Reason::OuterPolicy), "{policy}");
            assert_eq!(orders(policy, &outer("7", None)), Err(Reason::Cpuset), "{policy}");
        }
    }
}
