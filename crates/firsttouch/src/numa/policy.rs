//! NUMA policies: the nodes that the pages of an array come from, under the names that `numactl` uses, and their
//! restriction by the cpuset and the policy of the thread.

pub use crate::numa::orders::Orders;
use crate::numa::topology::Topology;
use crate::os::{self, Mode, Nodes};
use crate::reason::Reason;
use std::fmt;

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
#[path = "policy_tests.rs"]
mod tests;
