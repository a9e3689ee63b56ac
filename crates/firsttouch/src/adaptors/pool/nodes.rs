//! A pool on machines with several nodes: a heap for each, and recycled memory is made local before it is handed out: pages
//! that are not on the local node, because another node touched them first, are given back.
//!
//! The kernel is asked once for each unit. Units found to be local stay in the locality bitmap until their pages go.
//! Absent pages will be placed by their next touch, and are asked about again. What migrates or collapses pages clears the
//! bits first.

use super::{Pool, zero};
use crate::allocator::{Allocator, Request};
use crate::heap::growing::Span;
use crate::heap::purging;
use crate::heap::segment::{CLEAN, FIRST_EPOCH, Fresh, Segment, huge_page};
use crate::heap::{Heap, Held};
use crate::numa::local_nodes::{LocalNodes, Place};
use crate::os::{self, Errno};
use std::sync::atomic::Ordering::Relaxed;

/// A pool's heaps: one, or one for each local node.
pub(super) struct Heaps {
    /// By local node.
    all: Box<[Heap]>,
    /// `None` if all memory is equally near.
    pub local_nodes: Option<&'static LocalNodes>,
}

impl Heaps {
    pub(super) fn new(local_nodes: Option<&'static LocalNodes>) -> Self {
        let all = match local_nodes {
            None => Box::new([Heap::new(None)]) as Box<[Heap]>,
            Some(several) => (0..several.count()).map(|local_node| Heap::new(Some(local_node as u8))).collect(),
        };
        Self { all, local_nodes }
    }

    /// The heap of one local node.
    #[inline]
    pub(super) fn at(&self, local_node: u8) -> &Heap {
        &self.all[usize::from(local_node)]
    }

    /// The heap that a span belongs to.
    #[inline]
    pub(super) fn of(&self, span: Span) -> &Heap {
        self.at(span.segment.local_node)
    }

    /// The local node and the shard of this thread. `processor` selects the shard if there is only one local node.
    #[inline]
    pub(super) fn here(&self, shards: usize, processor: impl FnOnce() -> usize) -> Place {
        match self.local_nodes {
            None => Place { local_node: 0, shard: processor() % shards },
            Some(local_nodes) => local_nodes.here(),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Heap> + Clone {
        self.all.iter()
    }

    /// # Safety
    /// As for [`Heap::set_owner`].
    pub(super) unsafe fn set_owner(&self, owner: *const dyn Allocator) {
        // SAFETY: the owner stays where it is and outlives the heaps (`Pool::make`).
        self.all().for_each(|heap| unsafe { heap.set_owner(owner) });
    }

    /// The epoch of all heaps.
    #[inline]
    pub(super) fn epoch(&self) -> u8 {
        self.at(0).epoch()
    }

    pub(super) fn held(&self) -> Held {
        self.all().map(Heap::held).reduce(|a, b| a + b).unwrap_or_default()
    }

    /// Purges idle memory of at least this age; see [`Heap::purge`].
    pub(super) fn purge(&self, min_ticks: u8) -> [usize; 2] {
        self.all().map(|heap| heap.purge(min_ticks, usize::MAX)).fold([0; 2], purging::add)
    }

    pub(super) fn purge_parts(&self, min_ticks: u8) -> [usize; 2] {
        self.all().map(|heap| heap.purge_parts(min_ticks)).fold([0; 2], purging::add)
    }
}

impl Pool {
    /// Discards the misplaced pages of a span, unless placement is decided elsewhere. Returns the span and whether its
    /// ages are valid; `told` says whether they were before.
    ///
    /// # Safety
    /// The span belongs to the caller and is not in use yet.
    #[cold]
    pub(super) unsafe fn make_local(
        &self,
        local_nodes: &LocalNodes,
        span: Span,
        request: Request,
        told: bool,
    ) -> (Span, bool) {
        let (segment, heap) = (span.segment, self.heaps.of(span));
        if self.untold.load(Relaxed) || heap.takes_any() {
            return (span, told);
        }
        match local_nodes.policy_leads(segment.local_node) {
            Ok(true) => {}
            Ok(false) => return (span, told),
            Err(_) => {
                self.untold.store(true, Relaxed);
                return (span, told);
            }
        }
        if !told {
            segment.make_dirty(span.start, span.len, heap.epoch());
        }
        let before = segment.dirty_bytes(span.start, span.len);
        // SAFETY: the span is the caller's and nobody uses it yet (`Pool::allocate`).
        unsafe {
            if request.is_zeroed() && before == span.bytes() {
                let page = if segment.huge { huge_page() } else { os::page_size() };
                zero::renew(span, span.address(), span.address() + request.size(), page);
            }
            match give_back(local_nodes, heap, span) {
                Ok(bytes) => {
                    self.meter.purged.fetch_add(bytes as u64, Relaxed);
                }
                Err(_) => self.untold.store(true, Relaxed),
            }
        }
        let dirty = segment.dirty_bytes(span.start, span.len);
        self.touched(span.kind(), before - dirty);
        self.meter.renewed.fetch_add((before - dirty) as u64, Relaxed);
        (Span { dirty, ..span }, true)
    }

    /// Grows a used span in place, with memory local to this thread. Returns the fresh bytes of the addition.
    pub(super) fn extend(&self, span: Span, bytes: usize, fresh: Fresh) -> Option<usize> {
        let segment = span.segment;
        if self.heaps.local_nodes.is_some() && self.here().local_node != segment.local_node {
            return None;
        }
        self.flush_large();
        let (dirty, fresh) = self.heaps.of(span).extend(span, bytes, fresh)?;
        if let Some(local_nodes) = self.heaps.local_nodes {
            let (start, len) = (span.start + span.len, segment.span_len(span.start) - span.len);
            if !segment.is_known_local(start, len) {
                let added = Span { segment, start, len, dirty };
                // SAFETY: the addition was just allocated, for a block that its owner is resizing
                // (`Pool::resize_in_place`).
                unsafe { self.make_local(local_nodes, added, Request::bytes(1), true) };
            }
        }
        Some(fresh)
    }
}

/// Pages asked about at a time.
const AT_ONCE: usize = 512;

/// The locality of some pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
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
unsafe fn give_back(local_nodes: &LocalNodes, heap: &Heap, span: Span) -> Result<usize, Errno> {
    let segment = span.segment;
    let mut gone = 0;
    let (mut first, mut last) = (u32::MAX, 0);
    each_unknown(local_nodes, span, |start, len, clean| {
        look(local_nodes, segment, (start, len), clean, |start, len, found| match found {
            Found::Local if !clean => segment.set_local(start, len),
            Found::Remote if heap.has_room(|| local_nodes.has_room(segment.local_node, span.bytes())) => {
                let size = (len as usize) << segment.unit_shift();
                // SAFETY: the span is the caller's and nobody uses it yet (`make_local`). Locked memory
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
