//! NUMA policies: which nodes an array's pages come from, by the names that `numactl` uses, and how that fits into what
//! was decided outside.

use super::receipt::Reason;
use super::topology::Topology;
use crate::os::{self, Mode, Nodes};
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
    /// In equal slabs along an axis, one for each node, as a static loop's first touch would place them.
    Blocked(usize),
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
        let number = |what: &str| {
            let digits = rest.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            digits.and_then(|text| text.parse().ok()).ok_or_else(|| refused(&format!(" (it takes one {what})")))
        };
        match name {
            "bind" => which().map(Self::Bind),
            "interleave" => which().map(Self::Interleave),
            "preferred" => number("node").map(Self::Preferred),
            "blocked" => number("axis").map(Self::Blocked),
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
        Ok(Orders { mode, nodes, slabs: matches!(self, Self::Blocked(_)), clipped })
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

/// What the kernel is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    /// How nodes are chosen.
    pub mode: Mode,
    /// Among which.
    pub nodes: Nodes,
    /// Whether each node has one slab of the range, in the order of their numbers.
    pub slabs: bool,
    /// Whether more nodes were asked for.
    pub clipped: bool,
}

impl Orders {
    /// The ranges of `size` bytes and the nodes of each; every one but the last ends at a multiple of `page`.
    pub fn ranges(&self, size: usize, page: usize) -> Vec<(usize, usize, Nodes)> {
        if !self.slabs {
            return vec![(0, size, self.nodes)];
        }
        let count = self.nodes.len().max(1);
        let edge = |at: usize| if at == count { size } else { (size * at / count).next_multiple_of(page).min(size) };
        let each = self.nodes.iter().enumerate().map(|(at, node)| (edge(at), edge(at + 1), Nodes::one(node)));
        each.filter(|(from, to, _)| from < to).map(|(from, to, nodes)| (from, to - from, nodes)).collect()
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
