//! What must hold of a heap's records after every step, checked over random programs.

use crate::heap::purging::Victims;
use crate::heap::segment::{self, FIRST_EPOCH, FreshPages, NO_UNIT, RegionKind, Segment, UNMAPPED, age_of, huge_page};
use crate::heap::{Footprint, Heap, Span, Supply, Taken};
use crate::sources::Pages;
use proptest::prelude::*;
use std::sync::Arc;

/// Spans fill the segment without a gap, no two free ones touch, and each says the truth at both of its ends.
/// Bytes used, dirty and mapped.
fn check_spans(segment: &Segment) -> (usize, usize, usize) {
    let (mut used, mut dirty, mut free) = (0, 0, Vec::new());
    let mut unit = 0;
    let mut was_free = false;
    while unit < segment.top.get() {
        let (start, len, is_free) = (unit, segment.record(unit).len.get(), segment.is_free(unit));
        assert!(len > 0 && start + len <= segment.top.get());
        assert_eq!((segment.record(start + len - 1).len.get(), segment.is_free(start + len - 1)), (len, is_free));
        assert!(!(is_free && was_free), "free spans at {start} were not joined");
        if is_free {
            assert_eq!(segment.free_span(start).1, segment.count_dirty(start, len), "dirty units at {start}");
            free.push((start, len));
            dirty += segment.count_dirty(start, len);
        } else {
            assert!(segment.ages(start, len).iter().all(|age| age.get() != UNMAPPED), "used and not mapped");
            used += len;
        }
        (unit, was_free) = (start + len, is_free);
    }
    assert_eq!(unit, segment.top.get());
    check_lists(segment, &mut free);
    let mapped = segment.ages(0, segment.top.get()).iter().filter(|age| age.get() != UNMAPPED).count();
    (segment.bytes(used), segment.bytes(dirty), segment.bytes(mapped as u32))
}

/// Every free span is in the list of its class and side, once, and nothing else is.
fn check_lists(segment: &Segment, free: &mut Vec<(u32, u32)>) {
    for is_dirty in [false, true] {
        for class in 0..segment::CLASSES {
            let (mut at, mut previous) = (segment.heads[usize::from(is_dirty)][class].get(), NO_UNIT);
            while at != NO_UNIT {
                let record = segment.record(at);
                let len = record.len.get();
                assert_eq!((segment::class_of(len), record.prev_or_high.get()), (class, previous));
                assert_eq!(segment.free_span(at).1 > 0, is_dirty);
                let found = free.iter().position(|&span| span == (at, len));
                free.swap_remove(found.unwrap_or_else(|| panic!("{at} is listed and not free")));
                (previous, at) = (at, record.next_or_low.get());
            }
        }
    }
    assert_eq!(free, &[], "free spans that are in no list");
}

fn check(heap: &Heap) {
    for region in heap.regions.each_ref().map(|region| region.lock()) {
        let sum = region
            .segments
            .iter()
            .map(|segment| check_spans(segment))
            .fold((0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
        let Footprint { out, dirty, mapped } = region.held;
        assert_eq!(sum, (out, dirty, mapped), "used, dirty, mapped");
    }
}

/// The kind of a step, and two numbers.
type Step = (u8, usize, usize);

fn run(steps: &[Step]) {
    let pages = Pages::new(false); // which serves no requests
    let owner = Arc::as_ptr(&pages);
    // SAFETY: the owner outlives the heap, which is closed below.
    let heap = unsafe { Heap::new(0, owner) };
    let mut spans: Vec<(RegionKind, Span)> = Vec::new();
    let mut now = age_of(0);
    for &(step, a, b) in steps {
        let at = a % spans.len().max(1);
        match (step, spans.get(at).copied()) {
            (0..=5, _) | (_, None) => {
                let kind = if step % 2 == 0 { RegionKind::Base } else { RegionKind::Huge };
                let (bytes, align) = (1 + a % (3 << (12 + b % 11)), 1 << (6 + b % 17));
                let fresh = [FreshPages::Base, FreshPages::Huge, FreshPages::Inner][b % 3];
                let Taken { span, dirty } = heap.take_or_grow(kind, bytes, align.into(), fresh).unwrap();
                assert!(span.bytes() >= bytes && span.address().is_multiple_of(align));
                assert_eq!(dirty, span.segment.bytes(span.segment.count_dirty(span.start, span.len)));
                spans.push((kind, span));
            }
            (6..=10, Some((_, span))) => {
                spans.swap_remove(at);
                heap.region(span.kind()).free(span, now);
            }
            (11, Some((_, span))) if span.len > 1 => {
                let keep = 1 + b as u32 % (span.len - 1);
                spans[at].1 = heap.shrink(span, keep, now);
            }
            (12, Some((kind, span))) => {
                let bytes = span.bytes() + b % (4 << 20);
                if let Some((longer, _)) = heap.region(kind).extend(span, bytes, kind.pages()) {
                    assert!(longer.bytes() >= bytes);
                    spans[at].1 = longer;
                }
            }
            (13, _) => now = age_of((a % 1000) as u32),
            (14, _) => {
                let min_epochs = (a % 3) as u8;
                heap.purge(Victims { min_epochs, parts: false }, now, b % (8 << 20));
                heap.purge(Victims { min_epochs, parts: true }, now, usize::MAX);
            }
            (15, Some((kind, span))) => {
                spans.swap_remove(at);
                let page = if kind == RegionKind::Huge { huge_page() } else { 1 };
                if span.address().is_multiple_of(page) && span.bytes().is_multiple_of(page) {
                    heap.free_purged(span);
                } else {
                    heap.region(span.kind()).free(span, now);
                }
            }
            (16, _) => {
                let kind = if b % 2 == 0 { RegionKind::Base } else { RegionKind::Huge };
                let (bytes, align) = (1 + a % (3 << (12 + b % 11)), 1 << (6 + b % 17));
                let supply = if b % 4 < 2 { Supply::Dirty } else { Supply::MostlyDirty(kind.pages()) };
                if let Some(Taken { span, dirty }) = heap.region(kind).take(bytes, align.into(), supply).unwrap() {
                    assert!(span.bytes() >= bytes && span.address().is_multiple_of(align));
                    assert_eq!(dirty, span.segment.bytes(span.segment.count_dirty(span.start, span.len)));
                    assert!(dirty >= if b % 4 < 2 { span.bytes() } else { span.bytes() / 2 });
                    spans.push((kind, span));
                }
            }
            (17, Some((kind, span))) => {
                // SAFETY: it was taken here, and nobody uses it.
                let moved =
                    unsafe { heap.relocate(span, span.bytes() + a % (1 << 20), 1 << (6 + b % 17), kind.pages()) };
                if let Some(Taken { span: to, .. }) = moved {
                    spans[at].1 = to;
                }
            }
            _ => {
                heap.purge(Victims { min_epochs: (a % 6) as u8, parts: false }, now, b % (1 << 20));
            }
        }
        check(&heap);
    }
    for (_, span) in spans {
        heap.region(span.kind()).free(span, FIRST_EPOCH);
    }
    heap.purge(Victims { min_epochs: 0, parts: false }, now, usize::MAX);
    check(&heap);
    let mut held = Footprint::default();
    heap.add_footprint(&mut held);
    assert_eq!((held.out, held.dirty), (0, 0));
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
        run(&steps);
    }
}

mod lists {
    use crate::heap::segment::{CLASSES, Occupant, class_of};

    #[test]
    fn size_offset_and_tag_do_not_touch() {
        for (asked, offset, tag) in [(1, 0, 0), (u32::MAX as usize + 7, 3520, 7), ((1 << 47) - 1, 16320, 3)] {
            let block = Occupant::new(1, offset, tag).resized(asked);
            for found in [block, block.listed()] {
                assert_eq!((found.asked(), found.offset(), found.tag()), (asked, offset, tag));
            }
        }
    }

    #[test]
    fn classes_rise_with_length_and_fit_the_table() {
        let mut last = 0;
        for len in (1..100_000).chain((17..32).flat_map(|p| [(1u32 << p) - 1, 1 << p, (1 << p) + 1])) {
            assert!(class_of(len) >= last && class_of(len) < CLASSES, "{len}");
            last = class_of(len);
        }
        assert_eq!(class_of(u32::MAX), CLASSES - 1);
    }
}

/// When what glibc keeps is returned.
mod watch {
    use crate::heap::malloc_trim::Watch;
    use std::cell::Cell;
    use std::time::Duration;

    /// When a watch trims in ten seconds, at ticks of 100 ms where so many MiB are free and resident. A trim makes no difference to
    /// what is free, as glibc counts.
    fn trims(at: &dyn Fn(u64) -> [usize; 2]) -> Vec<u64> {
        let mut watch = Watch::new();
        let trims = |tick: &u64| {
            let [free, resident] = at(*tick).map(|mib| mib << 20);
            let trims = watch.look(Duration::from_millis(*tick), || free, || resident);
            if trims {
                watch.trimmed(free, resident);
            }
            trims
        };
        (0..10_000).step_by(100).filter(trims).collect()
    }

    #[test]
    fn what_stays_free_is_returned_once() {
        let grows = |now: u64| now as usize / 1000; // 1 MiB a second: once it is worth it
        let after = |ms: u64, now: u64| if now < ms { 1 } else { 400 };
        assert_eq!(trims(&|_| [500, 900]), []); // it was free from the start
        assert_eq!(trims(&|now| [after(1000, now), 900]), [1500]);
        assert_eq!(trims(&|now| [grows(now), 900]), [8500]);
        // What is used again stays.
        assert_eq!(trims(&|now| [if now.is_multiple_of(200) { 1 } else { 400 }, 900]), []);
        let in_turns = |now: u64| if (now / 1000).is_multiple_of(2) { 1 } else { 400 };
        assert_eq!(trims(&|now| [in_turns(now), 900]), [1500, 3500, 5500, 7500, 9500]);
        // What was used between two looks is returned; of what grows, none is known to be free.
        assert_eq!(trims(&|now| [after(1000, now), if now < 4000 { 100 } else { 400 }]), [1500, 4000]);
        assert_eq!(trims(&|now| [after(1000, now), grows(now)]), [1500, 9000]);
    }

    #[test]
    fn it_takes_a_hundredth_of_the_time() {
        let (mut watch, looks) = (Watch::new(), Cell::new(0));
        for now in (0..10_000).step_by(100).map(Duration::from_millis) {
            let before = looks.get();
            let look = || {
                looks.set(before + 1);
                400 << 20
            };
            watch.look(now, look, || 900 << 20);
            watch.took(now, now + Duration::from_millis(20 * (looks.get() - before)));
        }
        assert_eq!(looks.get(), 5); // 10 s, of which five times 20 ms
    }
}
