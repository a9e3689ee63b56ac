//! What must hold of a heap's records after every step, checked over random programs.

use crate::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use crate::heap::Heap;
use crate::heap::growing::{Region, Span};
use crate::heap::purging::purge_oldest;
use crate::heap::segment::{self, Side};
use crate::heap::segment::{FIRST_EPOCH, UNMAPPED};
use crate::heap::segment::{Fresh, PageKind, huge_page};
use crate::heap::segment::{NONE, Segment, SpanState};
use proptest::prelude::*;
use std::ptr::NonNull;

/// Spans fill the segment without a gap, no two free ones touch, and each says the truth at both of its ends.
/// Bytes used, dirty and mapped.
fn check_spans(segment: &Segment) -> (usize, usize, usize) {
    let (mut used, mut dirty, mut free) = (0, 0, Vec::new());
    let mut unit = 0;
    let mut before = SpanState::Used;
    while unit < segment.top.get() {
        let (start, len, state) = (unit, segment.record(unit).len.get(), segment.state(unit));
        assert!(len > 0 && start + len <= segment.top.get());
        assert_eq!((segment.record(start + len - 1).len.get(), segment.state(start + len - 1)), (len, state));
        assert!(state == SpanState::Used || before == SpanState::Used, "free spans at {start} were not joined");
        if state == SpanState::Free {
            assert_eq!(dirty_units(segment, start), segment.count_dirty(start, len), "dirty units at {start}");
            free.push((start, len));
            dirty += segment.count_dirty(start, len);
        } else {
            assert!(segment.ages(start, len).iter().all(|&age| age != UNMAPPED), "used and not mapped");
            used += len;
        }
        (unit, before) = (start + len, state);
    }
    assert_eq!(unit, segment.top.get());
    check_lists(segment, &mut free);
    let mapped = segment.ages(0, segment.top.get()).iter().filter(|&&age| age != UNMAPPED).count();
    ((used as usize) << segment.unit_shift(), (dirty as usize) << segment.unit_shift(), mapped << segment.unit_shift())
}

/// What the record of a free span says.
fn dirty_units(segment: &Segment, unit: u32) -> u32 {
    segment.record(unit).tag.get() >> 3
}

/// Every free span is in the list of its class and side, once, and nothing else is.
fn check_lists(segment: &Segment, free: &mut Vec<(u32, u32)>) {
    for side in [Side::Clean, Side::Dirty] {
        let lists = segment.lists[side as usize].get();
        for class in 0..segment::CLASSES {
            let head = lists.heads[class];
            assert_eq!(lists.filled[class / 64] & 1 << (class % 64) != 0, head != NONE, "class {class}");
            let (mut at, mut previous) = (head, NONE);
            while at != NONE {
                let record = segment.record(at);
                let len = record.len.get();
                assert_eq!((segment::class_of(len), record.prev.get()), (class, previous));
                assert_eq!(dirty_units(segment, at) > 0, side == Side::Dirty);
                let found = free.iter().position(|&span| span == (at, len));
                free.swap_remove(found.unwrap_or_else(|| panic!("{at} is listed and not free")));
                (previous, at) = (at, record.next.get());
            }
        }
    }
    assert_eq!(free, &[], "free spans that are in no list");
}

fn check(heap: &Heap) {
    for region in heap.regions.each_ref().map(|region| region.lock()) {
        let sum = region.segments().map(check_spans).fold((0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
        let Region { out, dirty, leaving, mapped, .. } = *region;
        assert_eq!((sum, leaving), ((out, dirty, mapped), 0), "used, dirty, mapped; leaving");
    }
}

/// The owner of the heap's segments, which serves no requests.
struct Owner;
static OWNER: Owner = Owner;

// SAFETY: it hands out nothing.
unsafe impl Allocator for Owner {
    fn describe(&self) -> Description {
        Description::of("owner")
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        Err(AllocError::new(request.size(), Limit::Upstream))
    }

    unsafe fn deallocate(&self, _address: NonNull<u8>) {}

    unsafe fn usable_size(&self, _address: NonNull<u8>) -> usize {
        0
    }
}

/// The kind of a step, and two numbers.
type Step = (u8, usize, usize);

fn run(heap: Heap, steps: &[Step]) {
    // SAFETY: the owner is static.
    unsafe { heap.set_owner(&raw const OWNER as *const dyn Allocator) };
    let mut spans: Vec<(PageKind, Span)> = Vec::new();
    for &(step, a, b) in steps {
        let at = a % spans.len().max(1);
        match (step, spans.get(at).copied()) {
            (0..=5, _) | (_, None) => {
                let kind = if step % 2 == 0 { PageKind::Base } else { PageKind::Huge };
                let (bytes, align) = (1 + a % (3 << (12 + b % 11)), 1 << (6 + b % 17));
                let sides = if step < 3 { [Side::Dirty, Side::Clean] } else { [Side::Clean, Side::Dirty] };
                let fresh = [Fresh::Base, Fresh::Huge, Fresh::Inner][b % 3];
                let span = heap.take_or_grow(kind, bytes, align, sides, fresh).unwrap();
                assert!(span.bytes() >= bytes && span.address().is_multiple_of(align));
                assert_eq!(
                    span.dirty,
                    (span.segment.count_dirty(span.start, span.len) as usize) << span.segment.unit_shift()
                );
                spans.push((kind, span));
            }
            (6..=10, Some((_, span))) => {
                spans.swap_remove(at);
                heap.region(span.kind()).give(span, heap.epoch());
            }
            (11, Some((_, span))) if span.len > 1 => {
                let keep = 1 + b as u32 % (span.len - 1);
                heap.shrink(span, keep);
                spans[at].1.len = keep;
            }
            (12, Some((kind, span))) => {
                let bytes = span.bytes() + b % (4 << 20);
                let extended = heap.region(kind).extend(span, bytes, kind.pages());
                if extended.is_some() {
                    spans[at].1.len = bytes.div_ceil(span.segment.unit()) as u32;
                }
            }
            (13, _) => heap.tick(),
            (14, _) => {
                _ = (heap.purge((a % 3) as u8, b % (8 << 20)), heap.purge_parts((a % 3) as u8), heap.unmap_clean())
            }
            (15, Some((kind, span))) => {
                spans.swap_remove(at);
                let page = if kind == PageKind::Huge { huge_page() } else { 1 };
                if span.address().is_multiple_of(page) && span.bytes().is_multiple_of(page) {
                    heap.give_back(span);
                } else {
                    heap.region(span.kind()).give(span, heap.epoch());
                }
            }
            (16, _) => {
                let kind = if b % 2 == 0 { PageKind::Base } else { PageKind::Huge };
                let (bytes, align) = (1 + a % (3 << (12 + b % 11)), 1 << (6 + b % 17));
                let resident = heap.region(kind).take_resident(bytes, align);
                if let Some(span) = resident {
                    assert!(span.bytes() >= bytes && span.address().is_multiple_of(align));
                    assert_eq!((span.dirty, span.segment.count_dirty(span.start, span.len)), (span.bytes(), span.len));
                    spans.push((kind, span));
                }
            }
            (17, Some((kind, span))) => {
                let to = heap
                    .take_or_grow(
                        kind,
                        span.bytes() + a % (1 << 20),
                        span.segment.unit(),
                        [[Side::Clean, Side::Dirty], [Side::Dirty, Side::Clean]][b % 2],
                        kind.pages(),
                    )
                    .unwrap();
                // SAFETY: both were taken here, and nobody uses them.
                if unsafe { heap.carry(span, to) } {
                    spans[at].1 = to;
                }
            }
            _ => {
                purge_oldest([&heap].into_iter(), b % (1 << 20));
            }
        }
        check(&heap);
    }
    for (_, span) in spans {
        heap.region(span.kind()).give(span, FIRST_EPOCH);
    }
    heap.purge(0, usize::MAX);
    check(&heap);
    let held = heap.held();
    assert_eq!((held.out, held.dirty), (0, 0));
    heap.unmap_clean();
    check(&heap);
    // Only memory that is not worth a hole is still mapped.
    assert!(heap.held().mapped <= (steps.len() + 1) * (64 << 10), "{:?}", heap.held());
    // SAFETY: the heap is not used any more.
    unsafe { heap.close() };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "minutes: it walks all pages after each step")]
    fn records_are_true_after_every_step(
        steps in prop::collection::vec((0u8..19, any::<usize>(), any::<usize>()), 1..120)
    ) {
        run(Heap::new(0), &steps);
    }
}
