//! The NUMA node of pages.

use super::runs::{Run, Runs, State};
use crate::os::{Errno, huge_page_size, nodes_of, only_node, page_size};
use std::collections::BTreeMap;
use std::ops::Range;

const AT_ONCE: usize = 4096;

/// Where the real pages of some runs lie.
pub struct Nodes {
    /// Bytes by node; nothing where the kernel does not say, -1 for pages of which it says none.
    pub bytes: Option<BTreeMap<i32, usize>>,
    /// Who said so.
    pub source: &'static str,
}

/// Asks for the node of one page in every `step` bytes of `range`, takes it for the whole step, and tells neighbours that
/// lie on the same one together.
pub fn each_node(range: Range<usize>, step: usize, mut visit: impl FnMut(Range<usize>, i32)) -> Result<(), Errno> {
    let (mut addresses, mut nodes) = (Vec::with_capacity(AT_ONCE), vec![0; AT_ONCE]);
    let mut at = range.start;
    while at < range.end {
        addresses.clear();
        while at < range.end && addresses.len() < AT_ONCE {
            addresses.push(at);
            at = (at / step + 1) * step;
        }
        nodes_of(&addresses, &mut nodes)?;
        let mut first = 0;
        for next in 1..=addresses.len() {
            if next == addresses.len() || nodes[next] != nodes[first] {
                let end = addresses.get(next).copied().unwrap_or(at.min(range.end));
                visit(addresses[first]..end, nodes[first]);
                first = next;
            }
        }
    }
    Ok(())
}

/// Bytes that certainly lie on the same node, where a run's pages are huge.
pub fn step(run: &Run) -> usize {
    // Elsewhere huge pages of several sizes may be smaller than the usual one.
    let known = run.state == State::Huge && cfg!(target_arch = "x86_64");
    huge_page_size().filter(|_| known).unwrap_or(page_size())
}

/// Tells the node of the real pages of `runs`, in order, or a negative number where the kernel names none: AutoNUMA hides
/// pages from it (Linux 6.1 to 6.5), or they left memory meanwhile. Who said so.
pub fn each(runs: &Runs, mut visit: impl FnMut(Range<usize>, i32)) -> Result<&'static str, Errno> {
    let real = || runs.iter().filter(|run| run.state.is_real());
    if let Some(node) = only_node() {
        real().for_each(|run| visit(run.range.clone(), node as i32));
        return Ok("/sys/devices/system/node/has_memory: one node");
    }
    for run in real() {
        each_node(run.range.clone(), step(run), &mut visit)?;
    }
    Ok("move_pages")
}

/// Sums up where the real pages of `runs` lie.
pub fn sums(runs: &Runs) -> Nodes {
    let mut bytes = BTreeMap::new();
    let source = each(runs, |pages, node| {
        *bytes.entry(node.max(-1)).or_insert(0) += pages.len();
    });
    match source {
        // What is neither real nor certainly not real might lie anywhere.
        Ok(source) if !runs.has(State::Present) && !runs.has(State::Unknown) => Nodes { bytes: Some(bytes), source },
        Ok(_) => Nodes { bytes: None, source: "not known, as it is not known which pages are real" },
        Err(_) => Nodes { bytes: None, source: "not known: move_pages is refused here" },
    }
}
