//! Misplaced pages: pages of idle memory that are not on the local node, because another node touched them first.
//!
//! The kernel is asked once for each unit. Units found to be local stay in the locality bitmap until their pages go.
//! Absent pages will be placed by their next touch, and are asked about again. What migrates or collapses pages clears the
//! bits first.

use crate::heap::growing::Span;
use crate::heap::segment::{CLEAN, FIRST_EPOCH, Segment};
use crate::heap::{Heap, segment};
use crate::numa::local_nodes::LocalNodes;
use crate::numa::policy::Orders;
use crate::os::{self, Errno};
use crate::pages::migration::Migration;
use crate::pages::receipt::Reason;
use crate::pages::touch::GoOn;
use crate::pages::{mapping, migration};

/// Pages asked about at a time.
const AT_ONCE: usize = 512;

/// The locality of some pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// All are present and local.
    Local,
    /// Some are on another node.
    Remote,
    /// Some are absent.
    Absent,
}

fn found(local_nodes: &LocalNodes, local_node: u8, nodes: &[i32]) -> Found {
    if nodes.iter().any(|&node| local_nodes.is_remote(local_node, node)) {
        Found::Remote
    } else if nodes.iter().all(|&node| node >= 0) {
        Found::Local
    } else {
        Found::Absent
    }
}

/// Discards the misplaced pages of a span whose ages are valid; returns their bytes, which read zero now. If the local
/// node has no room they stay, and `heap` accepts any pages for a while.
///
/// # Errors
/// If the system does not report the nodes of pages.
///
/// # Safety
/// The span is the caller's and nobody uses it yet.
pub(crate) unsafe fn give_back(local_nodes: &LocalNodes, heap: &Heap, span: Span) -> Result<usize, Errno> {
    let segment = span.segment;
    let mut gone = 0;
    let (mut first, mut last) = (u32::MAX, 0);
    each_unknown(local_nodes, span, |start, len, clean| {
        look(local_nodes, segment, (start, len), clean, |start, len, found| match found {
            Found::Local if !clean => segment.set_local(start, len),
            Found::Remote if heap.has_room(|| local_nodes.has_room(segment.local_node, span.bytes())) => {
                let size = (len as usize) << segment.unit_shift();
                // SAFETY: the span is the caller's and nobody uses it yet (the pool's `nodes.rs`). Locked memory
                // cannot be discarded, and stays where it is.
                if unsafe { os::discard(segment.address(start), size) }.is_ok() {
                    segment.empty(start, len, CLEAN);
                    gone += if clean { 0 } else { size };
                    (first, last) = (first.min(start), last.max(start + len));
                }
            }
            _ => {}
        })
    })?;
    if first < last && local_nodes.may_reach(segment.huge) {
        // The kernel may make huge pages whole again, on the node that most of one is on.
        gone += heap.empty_beside(
            span,
            first < segment.huge_above(span.start),
            last > segment.huge_below(span.start + span.len),
        );
    }
    Ok(gone)
}

/// Calls `visit` with runs of units that are not known to be local, and whether they are clean. Clean ones have pages
/// only where a neighbour's huge page reaches into them.
fn each_unknown(
    local_nodes: &LocalNodes,
    span: Span,
    mut visit: impl FnMut(u32, u32, bool) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let Span { segment, start, len, .. } = span;
    let end = start + len;
    let kind = |unit: u32| match segment.is_known_local(unit, 1) {
        true => None,
        false => Some(segment.ages(unit, 1)[0] < FIRST_EPOCH),
    };
    let mut at = start;
    while at < end {
        let its = kind(at);
        let next = (at + 1..end).find(|&unit| kind(unit) != its).unwrap_or(end);
        match its {
            Some(true) if local_nodes.may_reach(segment.huge) => {
                // A huge page that lies in clean units as a whole is not in use.
                let (low, high) = (segment.huge_above(at), segment.huge_below(next));
                if low < high {
                    visit(at, low - at, true)?;
                    visit(high, next - high, true)?;
                } else {
                    visit(at, next - at, true)?;
                }
            }
            Some(false) => visit(at, next - at, false)?,
            _ => {}
        }
        at = next;
    }
    Ok(())
}

/// Queries the pages of some units, of clean ones the first and the last, and reports the result in runs.
fn look(
    local_nodes: &LocalNodes,
    segment: &Segment,
    (start, len): (u32, u32),
    clean: bool,
    mut tell: impl FnMut(u32, u32, Found),
) -> Result<(), Errno> {
    let page = os::page_size();
    let pages = segment.unit() / page;
    let (each, step) = if clean && pages > 1 { (2, pages - 1) } else { (pages, 1) };
    let (mut addresses, mut nodes) = ([0; AT_ONCE], [0; AT_ONCE]);
    let mut run: Option<(u32, Found)> = None;
    for from in (start..start + len).step_by(AT_ONCE / each) {
        let units = ((AT_ONCE / each) as u32).min(start + len - from);
        let count = units as usize * each;
        for (at, address) in addresses[..count].iter_mut().enumerate() {
            *address = segment.address(from + (at / each) as u32) + at % each * step * page;
        }
        local_nodes.nodes_of(&addresses[..count], &mut nodes[..count])?;
        for (unit, nodes) in (from..).zip(nodes[..count].chunks(each)) {
            let now = found(local_nodes, segment.local_node, nodes);
            match run {
                Some((first, before)) if before != now => {
                    tell(first, unit - first, before);
                    run = Some((unit, now));
                }
                None => run = Some((unit, now)),
                _ => {}
            }
        }
    }
    if let Some((first, before)) = run {
        tell(first, start + len - first, before);
    }
    Ok(())
}

/// Moves the pages of a range to the nodes that `orders` name.
///
/// # Errors
/// If the kernel or the container permits no migration, or `go_on` returns `false`.
pub fn migrate(range: (usize, usize), orders: &Orders, go_on: GoOn<'_>) -> Result<Migration, Errno> {
    segment::forget_nodes(range.0, range.1);
    migration::migrate(range, orders, go_on)
}

/// Replaces the base pages of a range by huge pages where a whole huge page fits. Returns the bytes that are on huge
/// pages now, and why others are not.
pub fn collapse(range: (usize, usize), go_on: GoOn<'_>) -> (usize, Option<Reason>) {
    segment::forget_nodes(range.0, range.1); // a huge page is made where most of its small ones were
    mapping::collapse(range, go_on)
}
