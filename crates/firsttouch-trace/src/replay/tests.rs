//! A replay performs the recorded requests in order, in the right threads.

use super::{ReplayOptions, ReplayOutcome, Target, Touch, replay};
use crate::event::{BlockDetail, Event, EventKind};
use crate::format::TraceError;
use crate::summary::Summary;
use crate::survey::Survey;
use crate::tests::encoded;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

/// A request: its kind as a letter, the size, and the requesting thread.
type Recorded = (char, usize, ThreadId);

/// An allocator that records requests, and refuses one size.
#[derive(Default)]
struct RecordingTarget {
    requests: Mutex<Vec<Recorded>>,
    live: Mutex<HashMap<usize, usize>>,
}

const REFUSED: usize = 7777;

thread_local! {
    static ATTACHED: Cell<bool> = const { Cell::new(false) };
}

impl RecordingTarget {
    fn record(&self, what: char, size: usize) {
        assert!(ATTACHED.get(), "called outside a turn");
        self.requests.lock().unwrap().push((what, size, thread::current().id()));
    }
}

// SAFETY: every block is a boxed slice.
unsafe impl Target for RecordingTarget {
    fn attached(&self, turn: &mut dyn FnMut()) {
        assert!(!ATTACHED.replace(true), "a turn within a turn");
        turn();
        ATTACHED.set(false);
    }

    fn allocate(&self, size: usize, zeroed: bool) -> *mut u8 {
        self.record(if zeroed { 'z' } else { 'a' }, size);
        if size == REFUSED {
            return std::ptr::null_mut();
        }
        let block = Box::into_raw(vec![0u8; size].into_boxed_slice()).cast::<u8>();
        self.live.lock().unwrap().insert(block as usize, size);
        block
    }

    /// As realloc(3), which frees the block if no bytes are asked for.
    unsafe fn resize(&self, address: *mut u8, size: usize) -> *mut u8 {
        self.record('r', size);
        // SAFETY: the block is live (the player).
        unsafe { self.give_back(address) };
        if size == 0 {
            return std::ptr::null_mut();
        }
        let block = Box::into_raw(vec![0u8; size].into_boxed_slice()).cast::<u8>();
        self.live.lock().unwrap().insert(block as usize, size);
        block
    }

    unsafe fn free(&self, address: *mut u8, size: usize) {
        self.record('f', size);
        // SAFETY: the block is live (the player).
        assert_eq!(unsafe { self.give_back(address) }, size);
    }
}

impl RecordingTarget {
    /// # Safety
    /// The block is live.
    unsafe fn give_back(&self, address: *mut u8) -> usize {
        let size = self.live.lock().unwrap().remove(&(address as usize)).expect("a live block");
        // SAFETY: it was made from a box of this size.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(address, size)) });
        size
    }
}

fn at(thread: u32, micros: u64, kind: EventKind) -> Event {
    Event { kind, thread, micros }
}

fn allocate(block: u32, size: u64, zeroed: bool) -> EventKind {
    EventKind::Allocate { block, size, zeroed, detail: None }
}

/// Three threads that resize and free blocks of each other.
fn program() -> Vec<u8> {
    let mut events = Vec::new();
    for turn in 0..50 {
        events.push(at(turn % 3, turn.into(), allocate(0, 100 + u64::from(turn), turn % 2 == 0)));
        events.push(at((turn + 1) % 3, turn.into(), allocate(1, REFUSED as u64, false)));
        events.push(at((turn + 1) % 3, turn.into(), EventKind::Resize { block: 0, size: 5000 }));
        events.push(at(2, turn.into(), EventKind::Free { block: 1, resident: None }));
        events.push(at((turn + 2) % 3, turn.into(), EventKind::Free { block: 0, resident: None }));
        events.push(at(0, 0, EventKind::Site { file: "a.py".into(), line: turn }));
    }
    events.push(at(0, 99, allocate(0, 64, false)));
    encoded(&events, &Vec::new())
}

fn replayed(bytes: &[u8], threads: bool) -> (RecordingTarget, ReplayOutcome) {
    let target = RecordingTarget::default();
    let survey = Survey::new(bytes, false).unwrap();
    let options = ReplayOptions { touch: Touch::All, threads };
    let outcome = replay(bytes, &survey, &target, options).unwrap();
    assert!(target.live.lock().unwrap().is_empty());
    (target, outcome)
}

#[test]
fn requests_keep_their_order_and_threads() {
    let bytes = program();
    let (alone, outcome) = replayed(&bytes, false);
    let (several, same) = replayed(&bytes, true);
    assert_eq!((outcome.events, outcome.refused), (301, 50));
    assert_eq!((outcome.events, outcome.refused), (same.events, same.refused));
    assert_eq!(outcome.peak_in_use, 5000 + REFUSED as u64);
    let requests = |target: &RecordingTarget| target.requests.lock().unwrap().clone();
    let (alone, several) = (requests(&alone), requests(&several));
    let what = |requests: &[Recorded]| requests.iter().map(|&(what, size, _)| (what, size)).collect::<Vec<_>>();
    assert_eq!(what(&alone), what(&several));
    assert_eq!(what(&alone)[..4], [('z', 100), ('a', REFUSED), ('r', 5000), ('f', 5000)]);
    assert!(alone.iter().all(|&(.., by)| by == thread::current().id()));
    let by: Vec<ThreadId> = several.iter().take(12).map(|&(.., by)| by).collect();
    assert_eq!(by[0], thread::current().id());
    assert!(by[0] != by[1] && by[1] == by[2] && by[2] != by[3] && by[3] != by[0]);
}

#[test]
fn truncated_traces_are_replayed_up_to_their_end() {
    let bytes = program();
    for end in [20, bytes.len() / 2, bytes.len() - 1] {
        let cut = &bytes[..end];
        assert!(matches!(Survey::new(cut, false), Err(TraceError::Truncated(_))));
        let survey = Survey::new(cut, true).unwrap();
        assert!(!survey.complete);
        let target = RecordingTarget::default();
        let outcome = replay(cut, &survey, &target, ReplayOptions { touch: Touch::None, threads: true }).unwrap();
        assert_eq!(outcome.events, survey.totals.events);
        assert!(target.live.lock().unwrap().is_empty());
    }
}

#[test]
fn a_block_that_is_resized_to_nothing_is_freed_once() {
    let resize = EventKind::Resize { block: 0, size: 0 };
    let free = EventKind::Free { block: 0, resident: None };
    let (_, outcome) =
        replayed(&encoded(&[allocate(0, 64, false), resize, free].map(|kind| at(0, 0, kind)), &vec![]), false);
    assert_eq!((outcome.events, outcome.refused), (3, 0));
}

#[test]
fn summary_estimates_what_a_pool_saves() {
    let size = firsttouch::os::huge_page_size().unwrap_or(2 << 20) as u64 * 5;
    let pages = size / firsttouch::os::page_size() as u64;
    let detail = |site| Some(BlockDetail { site, present: 0, huge_offset: 0 });
    let large = |site| EventKind::Allocate { block: 0, size, zeroed: false, detail: detail(site) };
    let gone = |resident| EventKind::Free { block: 0, resident };
    let site = |line| at(0, 0, EventKind::Site { file: "a.py".into(), line });
    let events = [
        site(3),
        site(4),
        at(0, 0, large(1)),
        at(0, 100, gone(Some(pages))), // fresh memory from a pool, too
        at(0, 200, large(2)),
        at(0, 500, gone(Some(pages))), // recycled
        at(0, 3_000_000, large(2)),
        at(0, 3_000_300, gone(None)), // purged from a pool by then
        at(0, 3_000_400, large(2)),
        at(0, 3_000_700, gone(Some(0))), // recycled, and never touched
    ];
    let summary = summarized(&events, u64::MAX);
    let [_, first, second] = &summary.lines[..] else { panic!("three lines") };
    assert_eq!((first.line, first.count, first.bytes), (3, 1, size));
    assert_eq!((first.faults.small, first.pooled.huge), (pages as f64, size as f64));
    assert_eq!((second.line, second.count, second.bytes), (4, 3, 3 * size));
    assert_eq!((second.faults.small, second.pooled.huge), (2.0 * pages as f64, size as f64));
    assert!((280..=320).contains(&second.median_lifetime()), "{}", second.median_lifetime());
    let huge = summarized(&events, 4 << 20);
    assert!(huge.lines[1].faults.huge > 4.0);
}

#[test]
fn kept_blocks_come_on_huge_pages_if_they_were_filled() {
    if !firsttouch::os::transparent_huge_pages() {
        return;
    }
    let (size, detail) = (100_000, BlockDetail { site: 0, present: 0, huge_offset: 0 });
    let large = |block| EventKind::Allocate { block, size, zeroed: false, detail: Some(detail) };
    let pooled = |resident| {
        let made = (0..1000).map(|block| at(0, 0, large(block)));
        let kept = (0..1000).map(|block| at(0, 0, EventKind::Live { block, resident }));
        summarized(&made.chain(kept).collect::<Vec<_>>(), u64::MAX).lines[0].pooled
    };
    let filled = pooled(size / firsttouch::os::page_size() as u64 + 1);
    assert!(filled.huge > 2.0 * filled.small, "{filled:?}");
    assert_eq!(pooled(1).huge, 0.0);
}

fn summarized(events: &[Event], huge_from: u64) -> Summary {
    let trace = encoded(events, &Vec::new());
    Summary::new(&trace[..], &Survey::new(&trace[..], false).unwrap(), huge_from).unwrap()
}
