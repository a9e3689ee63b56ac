//! What is played is what was written, by every thread in its turn.

use super::{Options, Survey, Target, Touch, replay};
use crate::event::{Event, Kind};
use crate::format::{SEED, TraceError, hashed};
use crate::summary::Summary;
use crate::{Detail, Encoder};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

/// What a target was asked for: a letter, the size, and by whom.
type Asked = (char, usize, ThreadId);

/// Memory that notes what it is asked for, and refuses blocks of one size.
#[derive(Default)]
struct Noting {
    asked: Mutex<Vec<Asked>>,
    living: Mutex<HashMap<usize, usize>>,
}

const REFUSED: usize = 7777;

thread_local! {
    static ATTACHED: Cell<bool> = const { Cell::new(false) };
}

impl Noting {
    fn note(&self, what: char, size: usize) {
        assert!(ATTACHED.get(), "called outside a turn");
        self.asked.lock().unwrap().push((what, size, thread::current().id()));
    }
}

// SAFETY: every block is a boxed slice of its own.
unsafe impl Target for Noting {
    fn attached(&self, turn: &mut dyn FnMut()) {
        assert!(!ATTACHED.replace(true), "a turn within a turn");
        turn();
        ATTACHED.set(false);
    }

    fn allocate(&self, size: usize, zeroed: bool) -> *mut u8 {
        self.note(if zeroed { 'z' } else { 'a' }, size);
        if size == REFUSED {
            return std::ptr::null_mut();
        }
        let block = Box::into_raw(vec![0u8; size].into_boxed_slice()).cast::<u8>();
        self.living.lock().unwrap().insert(block as usize, size);
        block
    }

    unsafe fn resize(&self, address: *mut u8, size: usize) -> *mut u8 {
        self.note('r', size);
        // SAFETY: the caller's promise.
        unsafe { self.give_back(address) };
        let block = Box::into_raw(vec![0u8; size].into_boxed_slice()).cast::<u8>();
        self.living.lock().unwrap().insert(block as usize, size);
        block
    }

    unsafe fn free(&self, address: *mut u8, size: usize) {
        self.note('f', size);
        // SAFETY: the caller's promise.
        assert_eq!(unsafe { self.give_back(address) }, size);
    }
}

impl Noting {
    /// # Safety
    /// The block lives.
    unsafe fn give_back(&self, address: *mut u8) -> usize {
        let size = self.living.lock().unwrap().remove(&(address as usize)).expect("a block that lives");
        // SAFETY: it was made from a box of this size.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(address, size)) });
        size
    }
}

fn at(thread: u32, micros: u64, kind: Kind) -> Event {
    Event { kind, thread, micros }
}

fn given(block: u32, size: u64, zeroed: bool) -> Kind {
    Kind::Allocate { block, size, zeroed, detail: None }
}

fn written(events: &[Event]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::begin(&mut out, &[]);
    let mut sizes = HashMap::new();
    for event in events {
        match event.kind {
            Kind::Allocate { block, size, .. } => {
                encoder.totals.gave(size);
                sizes.insert(block, size);
            }
            Kind::Free { block, .. } => encoder.totals.changed(sizes[&block], 0),
            Kind::Resize { block, size } => encoder.totals.changed(sizes.insert(block, size).unwrap(), size),
            _ => {}
        }
        encoder.event(&mut out, event);
    }
    encoder.end(&mut out, &[]);
    let check = hashed(SEED, &out);
    out.extend(check.to_le_bytes());
    out
}

/// Three threads that pass blocks on to each other.
fn program() -> Vec<u8> {
    let mut events = Vec::new();
    for turn in 0..50 {
        events.push(at(turn % 3, turn.into(), given(0, 100 + u64::from(turn), turn % 2 == 0)));
        events.push(at((turn + 1) % 3, turn.into(), given(1, REFUSED as u64, false)));
        events.push(at((turn + 1) % 3, turn.into(), Kind::Resize { block: 0, size: 5000 }));
        events.push(at(2, turn.into(), Kind::Free { block: 1, resident: None }));
        events.push(at((turn + 2) % 3, turn.into(), Kind::Free { block: 0, resident: None }));
        events.push(at(0, 0, Kind::Site { file: "a.py".into(), line: turn }));
    }
    events.push(at(0, 99, given(0, 64, false)));
    written(&events)
}

fn played(bytes: &[u8], threads: bool) -> (Noting, super::Outcome) {
    let target = Noting::default();
    let survey = Survey::new(bytes, false).unwrap();
    let options = Options { touch: Touch::All, threads };
    let outcome = replay(bytes, &survey, &target, options).unwrap();
    assert!(target.living.lock().unwrap().is_empty());
    (target, outcome)
}

#[test]
fn requests_come_in_their_order_in_their_threads() {
    let bytes = program();
    let (alone, outcome) = played(&bytes, false);
    let (several, same) = played(&bytes, true);
    assert_eq!((outcome.events, outcome.refused), (301, 50));
    assert_eq!((outcome.events, outcome.refused), (same.events, same.refused));
    assert_eq!(outcome.peak_in_use, 5000 + REFUSED as u64);
    let asked = |target: &Noting| target.asked.lock().unwrap().clone();
    let (alone, several) = (asked(&alone), asked(&several));
    let what = |asked: &[Asked]| asked.iter().map(|&(what, size, _)| (what, size)).collect::<Vec<_>>();
    assert_eq!(what(&alone), what(&several));
    assert_eq!(what(&alone)[..4], [('z', 100), ('a', REFUSED), ('r', 5000), ('f', 5000)]);
    assert!(alone.iter().all(|&(.., by)| by == thread::current().id()));
    let by: Vec<ThreadId> = several.iter().take(12).map(|&(.., by)| by).collect();
    assert_eq!(by[0], thread::current().id());
    assert!(by[0] != by[1] && by[1] == by[2] && by[2] != by[3] && by[3] != by[0]);
}

#[test]
fn a_trace_that_is_cut_off_is_played_as_far_as_it_goes() {
    let bytes = program();
    for end in [20, bytes.len() / 2, bytes.len() - 1] {
        let cut = &bytes[..end];
        assert!(matches!(Survey::new(cut, false), Err(TraceError::CutOff(_))));
        let survey = Survey::new(cut, true).unwrap();
        assert!(!survey.complete);
        let target = Noting::default();
        let outcome = replay(cut, &survey, &target, Options { touch: Touch::None, threads: true }).unwrap();
        assert_eq!(outcome.events, survey.totals.events);
        assert!(target.living.lock().unwrap().is_empty());
    }
}

#[test]
fn what_a_pool_would_have_spared() {
    const SIZE: u64 = 10 << 20;
    let pages = SIZE / firsttouch::os::page_size() as u64;
    let detail = |site| Some(Detail { site, present: 0, place: 0 });
    let large = |site| Kind::Allocate { block: 0, size: SIZE, zeroed: false, detail: detail(site) };
    let gone = |resident| Kind::Free { block: 0, resident };
    let site = |line| at(0, 0, Kind::Site { file: "a.py".into(), line });
    let events = [
        site(3),
        site(4),
        at(0, 0, large(1)),
        at(0, 100, gone(Some(pages))), // fresh for a pool, too
        at(0, 200, large(2)),
        at(0, 500, gone(Some(pages))), // recycled
        at(0, 3_000_000, large(2)),
        at(0, 3_000_300, gone(None)), // a pool would have given it back meanwhile
        at(0, 3_000_400, large(2)),
        at(0, 3_000_700, gone(Some(0))), // recycled, and never touched
    ];
    let summary = Summary::new(&written(&events)[..], false, u64::MAX).unwrap();
    let [_, first, second] = &summary.lines[..] else { panic!("three lines") };
    assert_eq!((first.line, first.count, first.bytes), (3, 1, SIZE));
    assert_eq!((first.faults.small, first.avoidable.small), (pages as f64, 0.0));
    assert_eq!((second.line, second.count, second.bytes), (4, 3, 3 * SIZE));
    assert_eq!((second.faults.small, second.avoidable.small), (2.0 * pages as f64, pages as f64));
    assert!((280..=320).contains(&second.median_lifetime()), "{}", second.median_lifetime());
    let huge = Summary::new(&written(&events)[..], false, 4 << 20).unwrap();
    assert!(huge.lines[1].faults.huge > 4.0);
}
