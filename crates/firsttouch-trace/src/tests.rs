//! The format: what is written is read, and whatever is not whole is refused.

use super::event::{Detail, Event, Kind};
use super::format::{SEED, TraceError, hashed};
use super::ids::Ids;
use super::known::{Known, Living};
use super::output::Facts;
use super::{Encoder, Reader};
use proptest::prelude::*;
use std::collections::HashMap;

/// A wish of a random program: which living block, if any, and a number.
type Step = (u8, u16, u64, u32, u16);

/// Events of a program that does as told, numbered as a trace numbers them.
fn program(steps: &[Step]) -> Vec<Event> {
    let (mut ids, mut living, mut micros) = (Ids::new(Vec::new()), Vec::<u32>::new(), 0);
    let mut events = Vec::new();
    for &(what, which, size, thread, later) in steps {
        micros += u64::from(later);
        let at = usize::from(which) % living.len().max(1);
        let kind = match what % 6 {
            0 | 1 => {
                let block = ids.take();
                living.push(block);
                let detail = (size % 3 == 0).then_some(Detail { site: thread, present: size >> 40, place: size % 512 });
                Kind::Allocate { block, size, zeroed: what % 2 == 0, detail }
            }
            2 if !living.is_empty() => {
                let block = living.swap_remove(at);
                ids.give(block);
                Kind::Free { block, resident: (size % 2 == 0).then_some(size) }
            }
            3 if !living.is_empty() => Kind::Resize { block: living[at], size },
            4 if !living.is_empty() => Kind::Seen { block: living[at], resident: size },
            _ => Kind::Site { file: format!("/a/{which}.py"), line: thread },
        };
        events.push(Event { kind, thread: thread % 5, micros });
    }
    events
}

fn encoded(events: &[Event], facts: &Facts) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::begin(&mut out, facts);
    let mut sizes = HashMap::new();
    for event in events {
        match event.kind {
            Kind::Allocate { block, size, .. } => {
                encoder.totals.gave(size);
                sizes.insert(block, size);
            }
            Kind::Free { block, .. } => encoder.totals.changed(sizes.remove(&block).unwrap_or(0), 0),
            Kind::Resize { block, size } => {
                encoder.totals.changed(sizes.insert(block, size).unwrap_or(0), size);
            }
            _ => {}
        }
        encoder.event(&mut out, event);
    }
    encoder.end(&mut out, facts);
    let check = hashed(SEED, &out);
    out.extend(check.to_le_bytes());
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

fn sites_apart(event: Event) -> Event {
    match event.kind {
        Kind::Site { .. } => Event { thread: 0, micros: 0, ..event }, // a line has no time and no thread
        _ => event,
    }
}

fn facts() -> Facts {
    vec![("allocator".into(), "numpy_default()".into()), ("größe".into(), String::new())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(steps in prop::collection::vec(any::<Step>(), 0..200)) {
        // A stamp belongs to blocks only, so times that lines alone saw are seen by the next block.
        let events = program(&steps);
        let bytes = encoded(&events, &facts());
        let read = decoded(&bytes).unwrap();
        let clean = |events: Vec<Event>| events.into_iter().map(sites_apart).collect::<Vec<_>>();
        prop_assert_eq!(clean(read), clean(events));
    }

    #[test]
    fn any_flipped_bit_is_noticed(steps in prop::collection::vec(any::<Step>(), 1..40), at in any::<usize>(), bit in 0u32..8) {
        let mut bytes = encoded(&program(&steps), &facts());
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(decoded(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = decoded(&bytes);
        let mut whole = super::format::MAGIC.to_vec();
        whole.push(1);
        whole.append(&mut bytes);
        let _ = decoded(&whole);
    }

    #[test]
    fn the_table_of_addresses_is_a_map(steps in prop::collection::vec((1usize..300, any::<bool>()), 0..2000)) {
        let mut known = Known::new().unwrap();
        let mut model = HashMap::new();
        for (block, (address, enters)) in steps.into_iter().enumerate() {
            let address = address << 4;
            let living = Living { address, size: 1, block: block as u32, zeroed: false };
            if enters {
                prop_assert!(known.enter(living));
                model.insert(address, living);
            } else {
                prop_assert_eq!(known.leave(address), model.remove(&address));
            }
        }
        let mut all: Vec<_> = known.living().map(|living| living.block).collect();
        let mut expected: Vec<_> = model.values().map(|living| living.block).collect();
        all.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(all, expected);
    }
}

#[test]
fn the_table_grows() {
    let mut known = Known::new().unwrap();
    let at = |n: usize| Living { address: (n + 1) << 12, size: n as u64, block: n as u32, zeroed: false };
    (0..5000).for_each(|n| assert!(known.enter(at(n))));
    (0..5000).for_each(|n| assert_eq!(known.leave(at(n).address), Some(at(n))));
    assert_eq!(known.living().count(), 0);
}

#[test]
fn a_trace_cut_anywhere_is_refused() {
    let steps: Vec<Step> = (0..60).map(|n| (n as u8, n, u64::from(n) << (n % 40), n.into(), n)).collect();
    let bytes = encoded(&program(&steps), &facts());
    assert!(decoded(&bytes).is_ok());
    assert!(matches!(decoded(&[]), Err(TraceError::Empty)));
    for end in 1..bytes.len() {
        assert!(matches!(decoded(&bytes[..end]), Err(TraceError::CutOff(_))), "cut at {end}");
    }
}

#[test]
fn others_are_refused_by_name() {
    let bytes = encoded(&[], &facts());
    let mut later = bytes.clone();
    later[8] = 2;
    assert!(matches!(decoded(&later), Err(TraceError::Version(2))));
    assert!(matches!(decoded(b"import numpy as np\n"), Err(TraceError::NotATrace)));
    assert_eq!(decoded(&bytes).unwrap(), []);
}
