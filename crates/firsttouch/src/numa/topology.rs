//! The NUMA nodes of the machine: processors, memory and distances, as the kernel lists them.

use crate::os::{self, Nodes, Processors};

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
        Self::read_by(&os::system_file)
    }

    /// Reads the topology from files returned by `read`.
    pub fn read_by(read: &dyn Fn(&str) -> Option<String>) -> Self {
        let list = |name: &str| Nodes::parse(&read(&format!("{FOLDER}/{name}"))?);
        let Some(online) = list("online").filter(|nodes| !nodes.is_empty()) else { return Self::without_files(read) };
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

    fn without_files(read: &dyn Fn(&str) -> Option<String>) -> Self {
        let node = |number| {
            let (processors, free) = os::node(number)?;
            let memory = Some(NodeMemory { total: free, free, available: free }); // the total is not told
            Some(Node { number, processors, memory, distances: Vec::new() })
        };
        let nodes: Vec<Node> = (0..Nodes::ROOM).filter_map(node).collect();
        if !nodes.is_empty() {
            return Self { nodes };
        }
        let processors = read("/sys/devices/system/cpu/online").and_then(|text| Processors::parse(&text));
        let processors = processors.unwrap_or_else(|| (0..os::processors()).collect());
        let memory = read("/proc/meminfo").and_then(|text| memory_of(&text)).unwrap_or_else(|| {
            let free = os::headroom();
            NodeMemory { total: os::memory_total(), free, available: free }
        });
        let node = Node { number: 0, processors, memory: Some(memory), distances: vec![10] };
        Self { nodes: vec![node] }
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

/// Parses the meminfo of a node or of the machine.
fn memory_of(text: &str) -> Option<NodeMemory> {
    let line = |name: &str| {
        let found = text.lines().find_map(|line| line.split_once(&format!("{name}:")))?.1;
        found.split_whitespace().next()?.parse::<usize>().ok().map(|kib| kib << 10)
    };
    let (total, free) = (line("MemTotal")?, line("MemFree")?);
    let cache = ["Active(file)", "Inactive(file)", "SReclaimable"].into_iter().filter_map(line).sum::<usize>();
    // As the kernel estimates for the whole machine: half of the page cache may be in use.
    Some(NodeMemory { total, free, available: line("MemAvailable").unwrap_or(free + cache / 2) })
}

#[cfg(test)]
mod tests {
    use super::Topology;

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
}
