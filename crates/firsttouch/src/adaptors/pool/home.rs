//! On machines with several nodes: what was freed is used again at its home, once its pages were seen there.

use super::{Pool, zero};
use crate::allocator::Request;
use crate::heap::region::Span;
use crate::heap::shape::{Kind, huge_page};
use crate::heap::strays;
use crate::numa::homes::Homes;
use crate::os;
use std::sync::atomic::Ordering::Relaxed;

impl Pool {
    /// Gives back what a span has elsewhere, unless that was decided by somebody else; what it is then, and whether its
    /// ages are true, as they were where they are `told`.
    ///
    /// # Safety
    /// The span is the caller's and nobody uses it yet.
    #[cold]
    pub(super) unsafe fn bring_home(&self, homes: &Homes, span: Span, request: Request, told: bool) -> (Span, bool) {
        let (segment, heap) = (span.segment, self.heaps.of(span));
        if self.untold.load(Relaxed) || heap.takes_any() {
            return (span, told);
        }
        match homes.policy_leads(segment.home) {
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
        // SAFETY: the caller's promise.
        unsafe {
            if request.is_zeroed() && before == span.bytes() {
                let page = if segment.huge { huge_page() } else { os::page_size() };
                zero::renew(span, request.size(), page);
            }
            match strays::give_back(homes, heap, span) {
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

    /// Lengthens a used span where it stands, with memory that is near to this thread; bytes of the addition that are
    /// fresh.
    pub(super) fn extend(&self, kind: Kind, span: Span, bytes: usize) -> Option<usize> {
        let segment = span.segment;
        if self.heaps.homes.is_some() && self.here().home != segment.home {
            return None;
        }
        let (dirty, fresh) = self.heaps.of(span).extend(kind, span, bytes)?;
        if let Some(homes) = self.heaps.homes {
            let (start, len) = (span.start + span.len, segment.span_len(span.start) - span.len);
            if !segment.is_proven(start, len) {
                let added = Span { segment, start, len, dirty };
                // SAFETY: the addition was just taken, and is the block's whose holder this is.
                unsafe { self.bring_home(homes, added, Request::bytes(1), true) };
            }
        }
        Some(fresh)
    }
}
