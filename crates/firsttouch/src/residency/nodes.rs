//! The NUMA nodes of pages.

use super::runs::{PageRun, PageRuns, PageState};
use crate::os::{Errno, huge_page_size, nodes_of, only_node, page_size, thread_processors};
use std::collections::BTreeMap;
use std::ops::Range;
use std::thread;

/// Pages queried by one call.
const BATCH: usize = 4096;
/// Pages whose nodes are buffered at a time.
const SLICE: usize = 1 << 18;
/// Pages that justify another thread.
const PAGES_PER_THREAD: usize = 1 << 14;
const MAX_THREADS: usize = 8;
const STACK_SIZE: usize = 128 << 10;

/// Visits the pages of `range` with their nodes, adjacent pages on the same node together. One page in every `step` bytes
/// is queried, and stands for all of them.
pub fn visit_nodes_of_range(
    range: Range<usize>,
    step: usize,
    mut visit: impl FnMut(Range<usize>, i32),
) -> Result<(), Errno> {
    let mut nodes = Vec::new();
    // Where there is no memory for so many, they are queried by the batch.
    let slice = if nodes.try_reserve_exact(SLICE.min(range.len() / step + 2)).is_ok() { SLICE } else { BATCH };
    let mut at = range.start;
    while at < range.end {
        let end = ((at / step + slice) * step).min(range.end);
        nodes.resize((end - 1) / step - at / step + 1, 0);
        query_nodes(at, step, &mut nodes)?;
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

/// Queries the nodes of pages `step` bytes apart, from `start` on. Uses several threads for many pages, as each page takes
/// the kernel about 200 ns [measured].
fn query_nodes(start: usize, step: usize, nodes: &mut [i32]) -> Result<(), Errno> {
    let processors = thread_processors().map_or(1, |set| set.len());
    let threads = (nodes.len() / PAGES_PER_THREAD).clamp(1, processors.clamp(1, MAX_THREADS));
    let share = nodes.len().div_ceil(threads);
    let part = |first: usize, nodes: &mut [i32]| {
        let mut addresses = Vec::with_capacity(BATCH);
        for (turn, nodes) in nodes.chunks_mut(BATCH).enumerate() {
            let first = first + turn * BATCH;
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
                thread::Builder::new().stack_size(STACK_SIZE).spawn_scoped(scope, move || part(at * share, nodes))
            })
            .collect();
        helpers.into_iter().try_for_each(|helper| match helper {
            Ok(helper) => helper.join().unwrap_or(Err(Errno::UNSUPPORTED)),
            Err(_) => Err(Errno::AGAIN),
        })
    });
    if found == Err(Errno::AGAIN) { part(0, nodes) } else { found } // threads cannot be started
}

/// Returns how many bytes of a run are known to lie on one node: a huge page, or a base page.
pub fn step(run: &PageRun) -> usize {
    // Other architectures have huge pages smaller than the default.
    let known = run.state == PageState::Huge && cfg!(target_arch = "x86_64");
    huge_page_size().filter(|_| known).unwrap_or(page_size())
}

/// Visits the real pages of `runs`, in order, with their nodes, and returns the source. The node is negative where the
/// kernel tells none: automatic NUMA balancing hides pages (Linux 6.1 to 6.5), or the pages have left memory meanwhile.
///
/// # Errors
/// If the kernel refuses to tell.
pub fn visit_nodes(runs: &PageRuns, mut visit: impl FnMut(Range<usize>, i32)) -> Result<&'static str, Errno> {
    let real = || runs.iter().filter(|run| run.state.is_real());
    if let Some(node) = only_node() {
        real().for_each(|run| visit(run.range.clone(), node as i32));
        return Ok("/sys/devices/system/node/has_memory: one node");
    }
    for run in real() {
        visit_nodes_of_range(run.range.clone(), step(run), &mut visit)?;
    }
    Ok("move_pages")
}

/// Returns the bytes of the real pages of `runs` by node, if known, and the source. Node -1 stands for pages whose node the
/// kernel does not tell.
pub fn bytes_by_node(runs: &PageRuns) -> (Option<BTreeMap<i32, usize>>, &'static str) {
    let mut bytes = BTreeMap::new();
    let source = visit_nodes(runs, |pages, node| {
        *bytes.entry(node.max(-1)).or_insert(0) += pages.len();
    });
    match source {
        // Pages that may or may not be real could lie on any node.
        Ok(source) if !runs.has(PageState::Present) && !runs.has(PageState::Unknown) => (Some(bytes), source),
        Ok(_) => (None, "not known: it is not known which pages are real"),
        Err(_) => (None, "not known: move_pages is refused here"),
    }
}
