//! Traces survive a round trip, corrupt or truncated ones are rejected, and summaries say what a pool would save.

use super::format::{BlockIds, Event, EventKind, LARGE_SIZE, Metadata, TraceError};
use super::summary::RECORDED_FAULTS;
use super::{Encoder, Reader, Summary};
use firsttouch::gain::Fresh;
use proptest::prelude::*;

/// A step of a random program: what to do, to which live block, a size, a line, and the time elapsed.
type Step = (u8, u16, u64, u32, u16);

/// The events of a program that takes these steps, with the block numbers of a trace.
fn program(steps: &[Step]) -> Vec<Event> {
    let (mut ids, mut live, mut micros) = (BlockIds::default(), Vec::<u32>::new(), 0);
    let mut events = Vec::new();
    for &(what, which, size, line, later) in steps {
        micros += u64::from(later);
        let at = usize::from(which) % live.len().max(1);
        let kind = match what % 5 {
            0 | 1 => {
                let block = ids.acquire();
                live.push(block);
                EventKind::Allocate {
                    block,
                    size,
                    zeroed: what % 2 == 0,
                    is_array: which % 2 == 0,
                    site: if size < LARGE_SIZE { 0 } else { line },
                }
            }
            2 if !live.is_empty() => {
                let block = live.swap_remove(at);
                ids.release(block);
                EventKind::Free { block }
            }
            3 if !live.is_empty() => {
                EventKind::Resize { block: live[at], size, site: if size < LARGE_SIZE { 0 } else { line } }
            }
            _ => EventKind::Site { file: format!("/a/{which}.py"), line, library: "b.py:3".into() },
        };
        events.push(Event { kind, micros });
    }
    events
}

/// Returns a complete trace of the events.
fn encoded(events: &[Event], metadata: &Metadata) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::begin(&mut out, metadata);
    events.iter().for_each(|event| encoder.event(&mut out, event));
    encoder.end(&mut out, 0, metadata);
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

fn metadata() -> Metadata {
    vec![("allocator".into(), "numpy_default()".into()), ("größe".into(), String::new())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn round_trip(steps in prop::collection::vec(any::<Step>(), 0..200)) {
        let events = program(&steps);
        let bytes = encoded(&events, &metadata());
        prop_assert_eq!(decoded(&bytes).unwrap(), events);
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

fn summarized(events: &[Event], seen: &[(&str, &str)]) -> Summary {
    let seen: Metadata = seen.iter().map(|&(name, value)| (name.into(), value.into())).collect();
    Summary::new(&encoded(events, &seen)[..], false).unwrap()
}

#[test]
fn summary_estimates_what_a_pool_saves() {
    const MIB: u64 = 1 << 20;
    let make =
        |micros, size, site| at(micros, EventKind::Allocate { block: 0, size, zeroed: false, is_array: true, site });
    let free = |micros| at(micros, EventKind::Free { block: 0 });
    let site = |line| at(0, EventKind::Site { file: "a.py".into(), line, library: String::new() });
    let summary = summarized(
        &[
            site(3),
            site(4),
            make(0, 16 * MIB, 1), // fresh, plainly and from a pool
            free(100),
            make(200, 16 * MIB, 2), // a pool has it; glibc's thresholds have followed, and its heap grows
            free(500),
            make(600, 24 * MIB, 2), // a pool has a part; glibc maps it
            free(900),
            make(3_000_000, 16 * MIB, 2), // given back by a pool; glibc has kept it
            free(3_000_300),
        ],
        &[],
    );
    let [_, first, second] = &summary.lines[..] else { panic!("three lines") };
    assert_eq!((first.line, first.count, first.bytes), (3, 1, 16 * MIB));
    assert_eq!((first.taken.plainly.bytes(), first.taken.pooled.bytes()), (16 * MIB, 16 * MIB));
    assert_eq!((second.line, second.count, second.bytes), (4, 3, 56 * MIB));
    assert_eq!((second.taken.plainly.bytes(), second.taken.pooled.bytes()), (40 * MIB, 24 * MIB));
    assert!(second.taken.plainly.small > 0 && second.taken.pooled.small == 0, "the ends of blocks are on base pages");
    assert!((200..=400).contains(&second.median_lifetime()), "{}", second.median_lifetime());
}

#[test]
fn a_block_that_grows_belongs_to_the_line_that_made_it_large() {
    let events = [
        at(0, EventKind::Site { file: "a.py".into(), line: 3, library: String::new() }),
        at(0, EventKind::Allocate { block: 0, size: 20 << 10, zeroed: false, is_array: false, site: 0 }),
        at(0, EventKind::Resize { block: 0, size: 1 << 20, site: 1 }),
        at(0, EventKind::Resize { block: 0, size: 3 << 20, site: 0 }),
        at(0, EventKind::Free { block: 0 }),
    ];
    let summary = summarized(&events, &[]);
    let line = &summary.lines[1];
    assert_eq!((line.count, line.bytes, line.taken.plainly.bytes()), (1, 1 << 20, 3 << 20));
    assert_eq!((summary.allocations, summary.allocated_bytes), (0, 0));
    assert_eq!((summary.buffers, summary.buffer_bytes), (1, 3 << 20));
}

#[test]
fn summaries_are_bounded_by_the_faults_that_were_seen() {
    let events = [at(0, EventKind::Allocate { block: 0, size: 1 << 30, zeroed: true, is_array: true, site: 0 })];
    let faults = Fresh::of(1 << 30, 1 << 30, true).faults();
    for (seen, expected) in [(None, 1.0), (Some(2 * faults), 1.0), (Some(faults / 2), 0.5)] {
        let seen = seen.map(|faults| faults.to_string());
        let seen: Vec<_> = seen.iter().map(|faults| (RECORDED_FAULTS, faults.as_str())).collect();
        assert!((summarized(&events, &seen).touched() - expected).abs() < 0.01, "{seen:?}");
    }
}

#[test]
fn summaries_of_sizes_that_no_memory_has_end() {
    let make = |block| at(0, EventKind::Allocate { block, size: u64::MAX, zeroed: true, is_array: true, site: 9 });
    let resize = |size| at(0, EventKind::Resize { block: 0, size, site: 0 });
    let free = at(0, EventKind::Free { block: 0 });
    let summary = summarized(&[make(0), make(1), resize(1), resize(u64::MAX), free], &[]);
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
    assert!(whole.complete && !part.complete && part.events < whole.events);
}
