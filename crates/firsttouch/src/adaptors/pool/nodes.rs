//! A pool on machines with several nodes: a heap for each, and recycled memory is made local before it is handed out.

use super::{Pool, zero};
use crate::allocator::{Allocator, Request};
use crate::heap::growing::Span;
use crate::heap::nodes;
use crate::heap::purging;
use crate::heap::segment::{Fresh, Kind, huge_page};
use crate::heap::{Heap, Held};
use crate::numa::local_nodes::{LocalNodes, Place};
use crate::os;
use std::sync::atomic::Ordering::Relaxed;

/// A pool's heaps: one, or one for each local node.
pub(super) struct Heaps {
    first: Heap,
    others: Box<[Heap]>,
    /// `None` if all memory is equally near.
    pub local_nodes: Option<&'static LocalNodes>,
}

impl Heaps {
    pub(super) fn new(local_nodes: Option<&'static LocalNodes>) -> Self {
        let Some(several) = local_nodes else {
            return Self { first: Heap::new(), others: Box::default(), local_nodes };
        };
        Self {
            first: Heap::at(0),
            others: (1..several.count()).map(|local_node| Heap::at(local_node as u8)).collect(),
            local_nodes,
        }
    }

    /// The heap of one local node.
    #[inline]
    pub(super) fn at(&self, local_node: u8) -> &Heap {
        if local_node == 0 { &self.first } else { &self.others[usize::from(local_node) - 1] }
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
        std::iter::once(&self.first).chain(&self.others)
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
        self.first.epoch()
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
            match nodes::give_back(local_nodes, heap, span) {
                Ok(bytes) => {
                    self.meter.purged.fetch_add(bytes as u64, Relaxed);
                }
                Err(_) => self.untold.store(true, Relaxed),
            }
        }
        let dirty = segment.dirty_bytes(span.start, span.len);
        self.touched(span.kind(), before - dirty);
        (Span { dirty, ..span }, true)
    }

    /// Grows a used span in place, with memory local to this thread. Returns the fresh bytes of the addition.
    pub(super) fn extend(&self, kind: Kind, span: Span, bytes: usize, fresh: Fresh) -> Option<usize> {
        let segment = span.segment;
        if self.heaps.local_nodes.is_some() && self.here().local_node != segment.local_node {
            return None;
        }
        self.flush_large();
        let (dirty, fresh) = self.heaps.of(span).extend(kind, span, bytes, fresh)?;
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
