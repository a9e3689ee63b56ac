//! NUMA policies: which nodes an array's pages come from, by the names that `numactl` uses, and how that fits into what
//! was decided outside.

pub use crate::numa::orders::Orders;
use crate::numa::topology::Topology;
use crate::os::{self, Mode, Nodes};
use crate::pages::receipt::Reason;
use std::fmt;

/// Nodes that are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All that have memory and may be used.
    All,
    /// These.
    These(Nodes),
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// From these nodes and no others.
    Bind(Which),
    /// From this node, from others where it has none left.
    Preferred(usize),
    /// Page by page over these nodes.
    Interleave(Which),
    /// From the node of the processor that touches a page first.
    Local,
    /// In equal slabs along an axis, one for each node, as a static loop's first touch would place them. Negative axes
    /// count from the last.
    Blocked(isize),
}

impl Policy {
    /// The policy that `text` spells: a node's number, `bind:0-1`, `preferred:1`, `interleave:all`, `local`, `blocked:0`.
    ///
    /// # Errors
    /// A message that shows what was given and what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused = |why: &str| {
            format!(
                "{text:?} is no NUMA policy{why}: give a node's number, like 1, or \"bind:0-1\", \"preferred:1\", \
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
                .ok_or_else(|| refused(&format!(" ({list:?} is no list of nodes, like 0-1 or 0,2)"))),
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

    /// Whether the machine has what is named.
    ///
    /// # Errors
    /// A message that names the node and the nodes that there are.
    pub fn check(&self, machine: &Topology) -> Result<(), String> {
        let named = match self {
            Self::Bind(Which::These(nodes)) | Self::Interleave(Which::These(nodes)) => *nodes,
            Self::Preferred(node) if *node < Nodes::ROOM => Nodes::one(*node),
            Self::Preferred(node) => return Err(machine.lacks(*node).unwrap_or_default()),
            _ => Nodes::EMPTY,
        };
        named.iter().find_map(|node| machine.lacks(node)).map_or(Ok(()), Err)
    }

    /// What to tell the kernel, where `outer` decides what may be had.
    ///
    /// # Errors
    /// Why nothing of it may be had.
    pub fn within(&self, outer: &Outer) -> Result<Orders, Reason> {
        let may = outer.nodes();
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
            // Inside a set of nodes the kernel takes the nearest first; the policy itself would go beyond.
            Self::Local if outer.bounds.is_some() => (Mode::Bind, (may, false)),
            Self::Local => (Mode::Local, (may, false)),
            // Where the node has none left the kernel would go beyond what was decided outside.
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

/// What was decided outside: the cpuset, and the thread's policy (numactl, Slurm), where it keeps to a set of nodes.
#[derive(Clone, Copy, Debug)]
pub struct Outer {
    /// Nodes with memory.
    pub with_memory: Nodes,
    /// Nodes that the cpuset leaves.
    pub allowed: Nodes,
    /// Nodes that the thread's policy keeps to.
    pub bounds: Option<Nodes>,
}

impl Outer {
    /// As it is for this thread now.
    pub fn now(with_memory: Nodes) -> Self {
        Self {
            with_memory,
            allowed: os::allowed_nodes().unwrap_or(with_memory),
            bounds: os::thread_policy().ok().and_then(|policy| policy.bounds()),
        }
    }

    /// Nodes that memory may come from.
    pub fn nodes(&self) -> Nodes {
        let allowed = self.with_memory.and(&self.allowed);
        self.bounds.map_or(allowed, |bounds| allowed.and(&bounds))
    }

    /// Why none of these may be had.
    pub fn reason(&self, nodes: &Nodes) -> Reason {
        if nodes.and(&self.allowed).is_empty() { Reason::Cpuset } else { Reason::OuterPolicy }
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
