//! Traces survive a round trip, corrupt or truncated ones are rejected, and summaries say what a pool would save.

use super::format::{BlockDetail, BlockIds, CHECKSUM_SEED, Event, EventKind, Metadata, TraceError, checksum};
use super::{Encoder, Reader, Summary};
use proptest::prelude::*;
use std::collections::HashMap;

/// A step of a random program: what to do, to which live block, a size, a line, and the time elapsed.
type Step = (u8, u16, u64, u32, u16);

/// The events of a program that takes these steps, with the block numbers of a trace.
fn program(steps: &[Step]) -> Vec<Event> {
    let (mut ids, mut live, mut micros) = (BlockIds::default(), Vec::<u32>::new(), 0);
    let mut events = Vec::new();
    for &(what, which, size, line, later) in steps {
        micros += u64::from(later);
        let at = usize::from(which) % live.len().max(1);
        let kind = match what % 6 {
            0 | 1 => {
                let block = ids.acquire();
                live.push(block);
                let detail = BlockDetail { site: line, present: size >> 40, huge_offset: size % 512 };
                let detail = (size % 3 == 0).then_some(detail);
                EventKind::Allocate { block, size, zeroed: what % 2 == 0, detail }
            }
            2 if !live.is_empty() => {
                let block = live.swap_remove(at);
                ids.release(block);
                EventKind::Free { block, resident: (size % 2 == 0).then_some(size) }
            }
            3 if !live.is_empty() => EventKind::Resize { block: live[at], size },
            4 if !live.is_empty() => EventKind::Live { block: live[at], resident: size },
            _ => EventKind::Site { file: format!("/a/{which}.py"), line },
        };
        events.push(Event { kind, micros });
    }
    events
}

/// Returns a complete trace of the events.
fn encoded(events: &[Event], metadata: &Metadata) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::begin(&mut out, metadata);
    let mut sizes = HashMap::new();
    for event in events {
        match event.kind {
            EventKind::Allocate { block, size, .. } => {
                encoder.totals.on_alloc(size);
                sizes.insert(block, size);
            }
            EventKind::Free { block, .. } => encoder.totals.on_resize(sizes.remove(&block).unwrap_or(0), 0),
            EventKind::Resize { block, size } => {
                encoder.totals.on_resize(sizes.insert(block, size).unwrap_or(0), size);
            }
            _ => {}
        }
        encoder.event(&mut out, event);
    }
    encoder.end(&mut out, metadata);
    let checksum = checksum(CHECKSUM_SEED, &out);
    out.extend(checksum.to_le_bytes());
    out
}

fn decoded(bytes: &[u8]) -> Result<Vec<Event>, TraceError> {
    let mut reader = Reader::new(bytes)?;
    let mut events = Vec::new();
    while let Some(event) = reader.next()? {
        events.push(event);
    }
    Ok(events)
}

fn normalized(event: Event) -> Event {
    match event.kind {
        EventKind::Site { .. } => Event { micros: 0, ..event }, // sites have no time
        _ => event,
    }
}

fn metadata() -> Metadata {
    vec![("allocator".into(), "numpy_default()".into()), ("größe".into(), String::new())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn round_trip(steps in prop::collection::vec(any::<Step>(), 0..200)) {
        let events = program(&steps);
        let bytes = encoded(&events, &metadata());
        let read = decoded(&bytes).unwrap();
        let clean = |events: Vec<Event>| events.into_iter().map(normalized).collect::<Vec<_>>();
        prop_assert_eq!(clean(read), clean(events));
    }

    #[test]
    fn any_flipped_bit_is_detected(steps in prop::collection::vec(any::<Step>(), 1..40), at in any::<usize>(), bit in 0u32..8) {
        let mut bytes = encoded(&program(&steps), &metadata());
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(decoded(&bytes).is_err());
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = decoded(&bytes);
        let mut whole = super::format::MAGIC.to_vec();
        whole.push(1);
        whole.append(&mut bytes);
        let _ = decoded(&whole);
    }
}

#[test]
fn truncation_anywhere_is_detected() {
    let steps: Vec<Step> = (0..60).map(|n| (n as u8, n, u64::from(n) << (n % 40), n.into(), n)).collect();
    let bytes = encoded(&program(&steps), &metadata());
    assert!(decoded(&bytes).is_ok());
    assert!(matches!(decoded(&[]), Err(TraceError::Empty)));
    for end in 1..bytes.len() {
        assert!(matches!(decoded(&bytes[..end]), Err(TraceError::Truncated(_))), "cut at {end}");
    }
}

#[test]
fn other_files_are_rejected() {
    let bytes = encoded(&[], &metadata());
    let mut later = bytes.clone();
    later[8] = 2;
    assert!(matches!(decoded(&later), Err(TraceError::Version(2))));
    assert!(matches!(decoded(b"import numpy as np\n"), Err(TraceError::NotATrace)));
    assert_eq!(decoded(&bytes).unwrap(), []);
}

fn at(micros: u64, kind: EventKind) -> Event {
    Event { kind, micros }
}

fn summarized(events: &[Event]) -> Summary {
    let madvise = vec![("thp".into(), "madvise".into()), ("allocator".into(), "numpy_default()".into())];
    Summary::new(&encoded(events, &madvise)[..], false).unwrap()
}

#[test]
fn summary_estimates_what_a_pool_saves() {
    let size = firsttouch::os::huge_page_size().unwrap_or(2 << 20) as u64 * 5;
    let pages = size / firsttouch::os::page_size() as u64;
    let detail = |site| Some(BlockDetail { site, present: 0, huge_offset: 0 });
    let large = |site| EventKind::Allocate { block: 0, size, zeroed: false, detail: detail(site) };
    let gone = |resident| EventKind::Free { block: 0, resident };
    let site = |line| at(0, EventKind::Site { file: "a.py".into(), line });
    let summary = summarized(&[
        site(3),
        site(4),
        at(0, large(1)),
        at(100, gone(Some(pages))), // fresh memory from a pool, too
        at(200, large(2)),
        at(500, gone(Some(pages))), // recycled
        at(3_000_000, large(2)),
        at(3_000_300, gone(None)), // purged from a pool by then
        at(3_000_400, large(2)),
        at(3_000_700, gone(Some(0))), // recycled, and never touched
    ]);
    let [_, first, second] = &summary.lines[..] else { panic!("three lines") };
    assert_eq!((first.line, first.count, first.bytes), (3, 1, size));
    assert_eq!(first.pooled.huge, size as f64);
    assert_eq!((second.line, second.count, second.bytes), (4, 3, 3 * size));
    assert_eq!((second.pooled.huge, second.pooled.purges), (size as f64, 1.0));
    assert!((280..=320).contains(&second.median_lifetime()), "{}", second.median_lifetime());
    let faulted = |faults: crate::Faults| faults.small + faults.huge * (pages / 5) as f64;
    assert_eq!((faulted(first.faults), faulted(second.faults)), (pages as f64, 2.0 * pages as f64));
    assert!(first.faults.huge > 4.0);
}

#[test]
fn summaries_of_sizes_that_no_memory_has_end() {
    let detail = Some(BlockDetail { site: 9, present: u64::MAX, huge_offset: u64::MAX });
    let make = |block| at(0, EventKind::Allocate { block, size: u64::MAX, zeroed: true, detail });
    let resize = |size| at(0, EventKind::Resize { block: 0, size });
    let free = at(0, EventKind::Free { block: 0, resident: Some(u64::MAX) });
    let summary = summarized(&[make(0), make(1), resize(1), resize(u64::MAX), free]);
    assert_eq!((summary.complete, summary.lines[0].bytes), (true, u64::MAX));
}

#[test]
fn truncated_traces_are_summarized_up_to_their_end() {
    let steps: Vec<Step> = (0..60).map(|n| (n as u8, n, 1 << 20, 0, n)).collect();
    let bytes = encoded(&program(&steps), &metadata());
    let whole = Summary::new(&bytes[..], false).unwrap();
    let cut = &bytes[..bytes.len() / 2];
    assert!(matches!(Summary::new(cut, false), Err(TraceError::Truncated(_))));
    let part = Summary::new(cut, true).unwrap();
    assert!(whole.complete && !part.complete && part.totals.events < whole.totals.events);
}
