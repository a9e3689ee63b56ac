//! Machines with several NUMA nodes: their processors, memory and distances, as the kernel lists them; and the policies that say
//! from which nodes the pages of an array come, under the names that `numactl` uses.

use crate::os::{self, Mode, Nodes, Processors};
use crate::reason::Reason;
use crate::sync::OnceBox;
use std::fmt;

// ---- Topology --------------------------------------------------------------------------------------------------------

/// The memory of a node in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeMemory {
    /// Total memory.
    pub total: usize,
    /// Free memory.
    pub free: usize,
    /// Free memory, and page cache that can be reclaimed.
    pub available: usize,
}

/// An online node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The number of the node.
    pub number: usize,
    /// The processors; may be empty.
    pub processors: Processors,
    /// The memory, if it has any.
    pub memory: Option<NodeMemory>,
    /// The distances to all online nodes, in their order; 10 means local.
    pub distances: Vec<usize>,
}

/// The nodes of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The online nodes, by number.
    pub nodes: Vec<Node>,
}

const FOLDER: &str = "/sys/devices/system/node";

impl Topology {
    /// Reads the current topology. If the system shows no nodes, there is one with everything.
    pub fn read() -> Self {
        Self::read_by(&|path| std::fs::read_to_string(path).ok())
    }

    /// Reads the topology from files returned by `read`.
    pub fn read_by(read: &dyn Fn(&str) -> Option<String>) -> Self {
        let list = |name: &str| Nodes::parse(&read(&format!("{FOLDER}/{name}"))?);
        let Some(online) = list("online").filter(|nodes| !nodes.is_empty()) else { return Self::without_files() };
        let with_memory = list("has_memory").unwrap_or(online);
        let nodes = online.iter().map(|number| {
            let file = |name: &str| read(&format!("{FOLDER}/node{number}/{name}"));
            let memory = file("meminfo").and_then(|text| memory_of(&text)).filter(|_| with_memory.contains(number));
            let distances = file("distance").unwrap_or_default();
            Node {
                number,
                processors: file("cpulist").and_then(|text| Processors::parse(&text)).unwrap_or(Processors::EMPTY),
                memory,
                distances: distances.split_whitespace().filter_map(|word| word.parse().ok()).collect(),
            }
        });
        Self { nodes: nodes.collect() }
    }

    fn without_files() -> Self {
        let node = |number| {
            let (processors, free) = os::node(number)?;
            let memory = Some(NodeMemory { total: free, free, available: free }); // the total is not told
            Some(Node { number, processors, memory, distances: Vec::new() })
        };
        let nodes: Vec<Node> = (0..Nodes::CAPACITY).filter_map(node).collect();
        if !nodes.is_empty() {
            return Self { nodes };
        }
        let (processors, free) = ((0..os::processors()).collect(), os::headroom());
        let memory = Some(NodeMemory { total: os::memory_total(), free, available: free });
        Self { nodes: vec![Node { number: 0, processors, memory, distances: vec![10] }] }
    }

    /// Returns a node, if it is online.
    pub fn node(&self, number: usize) -> Option<&Node> {
        self.nodes.iter().find(|node| node.number == number)
    }

    /// Returns the online nodes.
    pub fn online(&self) -> Nodes {
        self.nodes.iter().map(|node| node.number).collect()
    }

    /// Returns the nodes with memory.
    pub fn with_memory(&self) -> Nodes {
        self.nodes.iter().filter(|node| node.memory.is_some_and(|memory| memory.total > 0)).map(|n| n.number).collect()
    }

    /// Returns the highest number of an online node.
    pub fn highest(&self) -> usize {
        self.nodes.last().map_or(0, |node| node.number)
    }

    /// Returns the available memory of some nodes in bytes.
    pub fn available_on(&self, nodes: &Nodes) -> usize {
        let found = self.nodes.iter().filter(|node| nodes.contains(node.number));
        found.filter_map(|node| node.memory).map(|memory| memory.available).sum()
    }

    /// Returns a message that tells why `node` has no memory, or `None` if it has.
    pub fn lacks(&self, node: usize) -> Option<String> {
        let (online, with_memory) = (self.online(), self.with_memory());
        let has = |nodes: &Nodes| format!("node{} {nodes}", if nodes.len() == 1 { "" } else { "s" });
        match self.node(node) {
            _ if with_memory.contains(node) => None,
            Some(_) => Some(format!("node {node} has no memory: {} have", has(&with_memory))),
            None => Some(format!("there is no node {node}: this machine has {}", has(&online))),
        }
    }
}

/// The nodes with memory, as of the first call, because a query costs more than a small block.
pub fn with_memory() -> Nodes {
    static NODES: OnceBox<Nodes> = OnceBox::new();
    *NODES.get_or_init(|| Box::new(Topology::read().with_memory()))
}

/// The only node with memory, if there is only one.
pub fn only_node() -> Option<usize> {
    let (nodes, is_denied) = (with_memory(), os::injected(os::Call::OnlyNode));
    nodes.iter().next().filter(|_| nodes.len() == 1 && !is_denied)
}

/// Parses the meminfo of a node.
fn memory_of(text: &str) -> Option<NodeMemory> {
    let line = |name: &str| {
        let found = text.lines().find_map(|line| line.split_once(&format!("{name}:")))?.1;
        found.split_whitespace().next()?.parse::<usize>().ok().map(|kib| kib << 10)
    };
    let (total, free) = (line("MemTotal")?, line("MemFree")?);
    let cache = ["Active(file)", "Inactive(file)", "SReclaimable"].into_iter().filter_map(line).sum::<usize>();
    // As the kernel estimates for the whole machine: half of the page cache may be in use.
    Some(NodeMemory { total, free, available: free + cache / 2 })
}

// ---- Policies --------------------------------------------------------------------------------------------------------

/// A NUMA policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How nodes are chosen.
    pub mode: Mode,
    /// The nodes to choose from; `None` for all with memory that may be used.
    pub nodes: Option<Nodes>,
}

impl Policy {
    /// Parses a policy: a node number, `bind:0-1`, `preferred:1`, `interleave:all` or `local`.
    ///
    /// # Errors
    /// A message that quotes the text and lists what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found = Self::parsed(text.trim().to_ascii_lowercase().as_str());
        found.ok_or_else(|| {
            format!(
                "{text:?} is not a NUMA policy: give a node number, like 1, or \"bind:0-1\", \"preferred:1\", \
                 \"interleave:all\" or \"local\""
            )
        })
    }

    fn parsed(text: &str) -> Option<Self> {
        let one = |text: &str| Nodes::parse(text).filter(|nodes| nodes.len() == 1);
        let some = |text: &str| Nodes::parse(text).filter(|nodes| !nodes.is_empty());
        let (mode, nodes) = match text.split_once(':').map(|(mode, nodes)| (mode.trim(), nodes.trim())) {
            None if text == "local" => (Mode::Local, None),
            None => (Mode::Bind, Some(one(text)?)),
            Some(("preferred", node)) => (Mode::Preferred, Some(one(node)?)),
            Some(("bind", "all")) => (Mode::Bind, None),
            Some(("bind", list)) => (Mode::Bind, Some(some(list)?)),
            Some(("interleave", "all")) => (Mode::Interleave, None),
            Some(("interleave", list)) => (Mode::Interleave, Some(some(list)?)),
            _ => return None,
        };
        Some(Self { mode, nodes })
    }

    /// Checks that the machine has the nodes of the policy.
    ///
    /// # Errors
    /// A message that names the missing node and the existing ones.
    pub fn check(&self, machine: &Topology) -> Result<(), String> {
        self.nodes.iter().flat_map(Nodes::iter).find_map(|node| machine.lacks(node)).map_or(Ok(()), Err)
    }

    /// Restricts the policy to what the cpuset and the policy of this thread allow (set by numactl or Slurm).
    ///
    /// # Errors
    /// The reason, if nothing of it is allowed.
    pub fn binding(&self) -> Result<Binding, Reason> {
        let there = with_memory();
        self.within(os::allowed_nodes().map_or(there, |allowed| allowed.and(&there)), os::policy_bounds())
    }

    fn within(&self, allowed: Nodes, bounds: Option<Nodes>) -> Result<Binding, Reason> {
        let may = bounds.map_or(allowed, |bounds| bounds.and(&allowed));
        let mode = match self.mode {
            // When the node is full, the kernel would go beyond the outer policy.
            Mode::Preferred if bounds.is_some() => return Err(Reason::OuterPolicy),
            // With `bind`, the kernel prefers the nearest node of the set; `local` would go beyond the set.
            Mode::Local if bounds.is_some() => Mode::Bind,
            mode => mode,
        };
        let wanted = self.nodes.unwrap_or(may);
        let nodes = wanted.and(&may);
        if !nodes.is_empty() {
            return Ok(Binding { mode, nodes, clipped: nodes != wanted });
        }
        let is_allowed = !self.nodes.unwrap_or(allowed).and(&allowed).is_empty();
        Err(if is_allowed { Reason::OuterPolicy } else { Reason::Cpuset })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = format!("{:?}", self.mode).to_ascii_lowercase();
        match self.nodes {
            _ if self.mode == Mode::Local => write!(f, "{mode}"),
            Some(nodes) => write!(f, "{mode}:{nodes}"),
            None => write!(f, "{mode}:all"),
        }
    }
}

/// A policy within the limits of the cpuset and the outer policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// How nodes are chosen.
    pub mode: Mode,
    /// The nodes to choose from.
    pub nodes: Nodes,
    /// Whether more nodes were requested.
    pub clipped: bool,
}

impl Binding {
    /// Returns the node of all pages, if there is one.
    pub fn one_node(&self) -> Option<usize> {
        self.nodes.iter().next().filter(|_| self.nodes.len() == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four(path: &str) -> Option<String> {
        let text = match path.strip_prefix("/sys/devices/system/node/")? {
            "online" => "0-2\n",
            "has_memory" => "0,2\n",
            "node0/cpulist" => "0-1\n",
            "node1/cpulist" => "2\n",
            "node0/distance" => "10 20 30\n",
            "node0/meminfo" | "node2/meminfo" => {
                "Node 0 MemTotal:  1024 kB\nNode 0 MemFree:  512 kB\nNode 0 Active(file):  256 kB\n"
            }
            _ => return None,
        };
        Some(text.into())
    }

    #[test]
    fn parses_the_files_of_the_kernel() {
        let found = Topology::read_by(&four);
        assert_eq!(
            (found.highest(), found.online().to_string(), found.with_memory().to_string()),
            (2, "0-2".into(), "0,2".into())
        );
        assert_eq!(found.nodes[0].distances, [10, 20, 30]);
        let memory = found.nodes[0].memory.unwrap();
        assert_eq!((memory.total, memory.free, memory.available), (1 << 20, 1 << 19, (1 << 19) + (1 << 17)));
        assert_eq!(found.nodes[0].processors.to_string(), "0-1");
        assert_eq!(found.lacks(0), None);
        assert_eq!(found.lacks(1).unwrap(), "node 1 has no memory: nodes 0,2 have");
        assert_eq!(found.lacks(99).unwrap(), "there is no node 99: this machine has nodes 0-2");
    }

    #[test]
    fn without_nodes_there_is_one() {
        let found = Topology::read_by(&|_| None);
        assert_eq!((found.nodes.len(), found.highest(), found.nodes[0].processors.is_empty()), (1, 0, false));
        assert_eq!((found.lacks(0), found.nodes[0].memory.unwrap().total), (None, crate::os::memory_total()));
    }

    #[test]
    fn policies_round_trip() {
        for text in ["bind:0-1", "bind:all", "preferred:1", "interleave:all", "interleave:0,2,63-65,1023", "local"] {
            assert_eq!(Policy::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Policy::parse(" 1 ").unwrap().to_string(), "bind:1");
        assert_eq!(Policy::parse("Interleave: 0-1").unwrap().to_string(), "interleave:0-1");
    }

    #[test]
    fn invalid_policies_are_rejected() {
        let texts = "|bnid:0|bind|bind:|bind:x|bind:1-0|bind:-1|bind:0,,1|bind:0x1|bind:1-|bind:1024|-1|preferred\
            |preferred:0-1|local:1|blocked:0|interleave|1024|99999999999999999999|1.5|+1|default";
        for text in texts.split('|') {
            let message = Policy::parse(text).expect_err(text);
            assert!(message.contains(&format!("{text:?}")) && message.contains("\"bind:0-1\""), "{message}");
        }
    }

    #[test]
    fn outer_restrictions_are_never_widened() {
        use Mode::{Bind, Interleave, Local};
        use Reason::{Cpuset, OuterPolicy};
        for (policy, allowed, bounds, expected) in [
            ("bind:1-2", "0-3", None, Ok((Bind, "1-2", false))),
            ("interleave:all", "0-3", None, Ok((Interleave, "0-3", false))),
            ("local", "0-3", None, Ok((Local, "0-3", false))),
            ("bind:2", "0-1", None, Err(Cpuset)),
            ("bind:1-2", "0-1", None, Ok((Bind, "1", true))),
            ("interleave:all", "0-1", None, Ok((Interleave, "0-1", false))),
            ("bind:1", "0-3", Some("0,3"), Err(OuterPolicy)),
            ("preferred:0", "0-3", Some("0,3"), Err(OuterPolicy)),
            ("local", "0-3", Some("0,3"), Ok((Bind, "0,3", false))),
            ("bind:all", "0-1", Some("2"), Err(OuterPolicy)),
            ("local", "0-1", Some("2"), Err(OuterPolicy)),
            ("preferred:0", "1", None, Err(Cpuset)),
            ("interleave:all", "", None, Err(Cpuset)),
        ] {
            let nodes = |text| Nodes::parse(text).unwrap();
            let found = Policy::parse(policy).unwrap().within(nodes(allowed), bounds.map(nodes));
            let expected = expected.map(|(mode, list, clipped)| Binding { mode, nodes: nodes(list), clipped });
            assert_eq!(found, expected, "{policy} within {allowed} and {bounds:?}");
        }
    }
}
