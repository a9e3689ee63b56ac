//! On machines with several nodes: recycled memory is made local before it is handed out.

use super::{Pool, zero};
use crate::allocator::Request;
use crate::heap::misplaced;
use crate::heap::region::Span;
use crate::heap::shape::{Kind, huge_page};
use crate::numa::local_nodes::LocalNodes;
use crate::os;
use std::sync::atomic::Ordering::Relaxed;

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
            match misplaced::give_back(local_nodes, heap, span) {
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
    pub(super) fn extend(&self, kind: Kind, span: Span, bytes: usize) -> Option<usize> {
        let segment = span.segment;
        if self.heaps.local_nodes.is_some() && self.here().local_node != segment.local_node {
            return None;
        }
        self.flush_large();
        let (dirty, fresh) = self.heaps.of(span).extend(kind, span, bytes)?;
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
