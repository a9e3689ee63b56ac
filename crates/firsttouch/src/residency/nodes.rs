//! The NUMA node of pages.

use super::runs::{Run, Runs, State};
use crate::os::{Errno, huge_page_size, nodes_of, only_node, page_size, thread_processors};
use std::collections::BTreeMap;
use std::ops::Range;
use std::thread;

/// Pages in one call.
const AT_ONCE: usize = 4096;
/// Pages whose nodes are held at a time.
const SLICE: usize = 1 << 18;
/// Pages that are worth a thread more.
const PER_THREAD: usize = 1 << 14;
const MOST_THREADS: usize = 8;
const STACK: usize = 128 << 10;

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
    let mut nodes = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let end = ((at / step + SLICE) * step).min(range.end);
        nodes.resize((end - 1) / step - at / step + 1, 0);
        ask(at, step, &mut nodes)?;
        let edge = |page: usize| if page == 0 { at } else { ((at / step + page) * step).min(end) };
        let mut first = 0;
        for next in 1..=nodes.len() {
            if next == nodes.len() || nodes[next] != nodes[first] {
                visit(edge(first)..edge(next), nodes[first]);
                first = next;
            }
        }
        at = end;
    }
    Ok(())
}

/// The nodes of pages `step` bytes apart from `start` on: by several threads where there are many, as each page costs
/// the kernel some 200 ns [measured].
fn ask(start: usize, step: usize, nodes: &mut [i32]) -> Result<(), Errno> {
    let processors = thread_processors().map_or(1, |set| set.len());
    let threads = (nodes.len() / PER_THREAD).clamp(1, processors.clamp(1, MOST_THREADS));
    let share = nodes.len().div_ceil(threads);
    let part = |first: usize, nodes: &mut [i32]| {
        let mut addresses = Vec::with_capacity(AT_ONCE);
        for (turn, nodes) in nodes.chunks_mut(AT_ONCE).enumerate() {
            let first = first + turn * AT_ONCE;
            addresses.clear();
            addresses.extend((first..first + nodes.len()).map(|page| start.max((start / step + page) * step)));
            nodes_of(&addresses, nodes)?;
        }
        Ok(())
    };
    if threads == 1 {
        return part(0, nodes);
    }
    let found = thread::scope(|scope| {
        let helpers: Vec<_> = nodes
            .chunks_mut(share)
            .enumerate()
            .map(|(at, nodes)| {
                thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || part(at * share, nodes))
            })
            .collect();
        helpers.into_iter().try_for_each(|helper| match helper {
            Ok(helper) => helper.join().unwrap_or(Err(Errno::UNSUPPORTED)),
            Err(_) => Err(Errno::AGAIN),
        })
    });
    if found == Err(Errno::AGAIN) { part(0, nodes) } else { found } // threads may not be had
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
