//! Damaged or truncated traces are rejected, and summaries say what a pool would save.

use super::Summary;
use super::format::{Kind, LARGE_SIZE, MAGIC, Metadata, Record, TraceError, VERSION, write_facts};
use super::summary::RECORDED_FAULTS;
use firsttouch::gain::Fresh;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// What a trace of one line and one block may have.
#[derive(Clone, Copy)]
enum Step {
    Site(u32),
    /// Its size, whether it is zeroed, for an array, and its line.
    Make(u64, bool, bool, u32),
    Resize(u64, u32),
    Free,
}

/// The trace of a program that takes these steps, at these microseconds, with one block at a time.
fn trace(steps: &[(u64, Step)], facts: &[(&str, &str)]) -> Vec<u8> {
    const AT: u64 = 1 << 30;
    let facts: Metadata = facts.iter().map(|&(name, value)| (name.into(), value.into())).collect();
    let mut out = [MAGIC, VERSION.to_le_bytes()].concat();
    write_facts(&mut out, &facts);
    for &(micros, step) in steps {
        let text: &[u8] = if let Step::Site(_) = step { b"a.py\0" } else { b"" };
        let record = match step {
            Step::Site(line) => Record::of(Kind::Site, line.into(), text.len() as u64),
            Step::Make(size, zeroed, is_array, site) => {
                Record { zeroed, is_array, site, ..Record::of(Kind::Allocate, AT, size) }
            }
            Step::Resize(size, site) => {
                Record::of(Kind::Resize, AT, 0).write(&mut out, &[]);
                Record { site, old: AT, ..Record::of(Kind::Resized, AT, size) }
            }
            Step::Free => Record::of(Kind::Free, AT, 0),
        };
        Record { micros, ..record }.write(&mut out, text);
    }
    Record::of(Kind::End, 0, 0).write(&mut out, &[]);
    out
}

fn summarized(steps: &[(u64, Step)], facts: &[(&str, &str)]) -> Summary {
    Summary::new(&trace(steps, facts)[..], false).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_traces_end(numbers in prop::collection::vec((0u64..9, 0u64..4, any::<u64>(), 0u64..4), 0..200)) {
        let mut whole = [MAGIC, VERSION.to_le_bytes()].concat();
        for (first, address, size, old) in numbers {
            let numbers = [first | address << 32, size % 1000, address, size, old];
            numbers.iter().for_each(|number| whole.extend(number.to_le_bytes()));
        }
        let _ = Summary::new(&whole[..], true);
        let _ = Summary::new(&whole[5..], true);
    }
}

#[test]
fn records_are_read_as_they_were_written() {
    let record =
        Record { zeroed: true, is_array: true, site: 7, micros: 1 << 40, old: 3, ..Record::of(Kind::Resized, 2, 9) };
    let mut bytes = Vec::new();
    record.write(&mut bytes, b"");
    assert_eq!(Record::read(&bytes.try_into().unwrap()), Some(record));
}

#[test]
fn truncation_anywhere_is_detected() {
    let steps =
        [(0, Step::Site(3)), (1, Step::Make(MIB, true, true, 1)), (2, Step::Resize(2 * MIB, 0)), (3, Step::Free)];
    let bytes = trace(&steps, &[("name", "value")]);
    let whole = Summary::new(&bytes[..], false).unwrap();
    assert!(whole.complete);
    for end in 0..bytes.len() {
        let error = Summary::new(&bytes[..end], false).err().unwrap();
        let expected =
            if end < 16 { matches!(error, TraceError::NotATrace) } else { matches!(error, TraceError::Truncated(_)) };
        assert!(expected, "cut at {end}: {error}");
        assert!(
            end < 16
                || Summary::new(&bytes[..end], true).is_ok_and(|part| !part.complete && part.events <= whole.events)
        );
    }
}

#[test]
fn other_files_are_rejected() {
    let mut later = trace(&[], &[]);
    later[8] = 2;
    assert!(matches!(Summary::new(&later[..], true), Err(TraceError::Version(2))));
    assert!(matches!(Summary::new(&b"import numpy as np\n"[..], true), Err(TraceError::NotATrace)));
}

#[test]
fn summary_estimates_what_a_pool_saves() {
    let make = |size, site| Step::Make(size, false, true, site);
    let summary = summarized(
        &[
            (0, Step::Site(3)),
            (0, Step::Site(4)),
            (0, make(16 * MIB, 1)), // fresh, plainly and from a pool
            (100, Step::Free),
            (200, make(16 * MIB, 2)), // a pool has it; glibc's thresholds have followed, and its heap grows
            (500, Step::Free),
            (600, make(24 * MIB, 2)), // a pool has a part; glibc maps it
            (900, Step::Free),
            (3_000_000, make(16 * MIB, 2)), // given back by a pool; glibc has kept it
            (3_000_300, Step::Free),
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
    let steps = [
        (0, Step::Site(3)),
        (0, Step::Make(20 << 10, false, false, 0)),
        (0, Step::Resize(1 << 20, 1)),
        (0, Step::Resize(3 << 20, 0)),
        (0, Step::Free),
    ];
    let summary = summarized(&steps, &[]);
    let line = &summary.lines[1];
    assert_eq!((line.count, line.bytes, line.taken.plainly.bytes()), (1, 1 << 20, 3 << 20));
    assert_eq!((summary.allocations, summary.allocated_bytes), (0, 0));
    assert_eq!((summary.buffers, summary.buffer_bytes), (1, 3 << 20));
}

/// Its free is not recorded.
#[test]
fn a_block_that_shrinks_below_what_is_recorded_is_gone() {
    let summary = summarized(&[(0, Step::Make(MIB, false, true, 0)), (1, Step::Resize(LARGE_SIZE - 1, 0))], &[]);
    assert_eq!((summary.peak_in_use, summary.in_use), (MIB, 0));
}

#[test]
fn what_was_not_recorded_is_large_from_its_resize_on() {
    let summary = summarized(&[(0, Step::Resize(LARGE_SIZE - 1, 0)), (0, Step::Resize(LARGE_SIZE, 0))], &[]);
    assert_eq!((summary.buffers, summary.buffer_bytes, summary.lines[0].count), (1, LARGE_SIZE, 1));
}

#[test]
fn summaries_are_bounded_by_the_faults_that_were_seen() {
    let steps = [(0, Step::Make(1 << 30, true, true, 0))];
    let faults = Fresh::of(1 << 30, 1 << 30, true).faults();
    for (seen, expected) in [(None, 1.0), (Some(2 * faults), 1.0), (Some(faults / 2), 0.5)] {
        let seen = seen.map(|faults| faults.to_string());
        let seen: Vec<_> = seen.iter().map(|faults| (RECORDED_FAULTS, faults.as_str())).collect();
        assert!((summarized(&steps, &seen).touched() - expected).abs() < 0.01, "{seen:?}");
    }
}

#[test]
fn summaries_of_sizes_that_no_memory_has_end() {
    let make = Step::Make(u64::MAX, true, true, 9);
    let steps = [make, make, Step::Resize(1, 0), Step::Resize(u64::MAX, 0), Step::Free].map(|step| (0, step));
    let summary = summarized(&steps, &[]);
    assert_eq!((summary.complete, summary.lines[0].bytes), (true, u64::MAX));
}
