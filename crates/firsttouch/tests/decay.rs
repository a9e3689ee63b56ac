//! Law 10: idle memory is returned, even if the program makes no further requests.

#![cfg(target_os = "linux")]

mod common;

use common::alone::each_alone;
use common::held::Held;
use common::process::{resident, settles, threads_called, within};
use firsttouch::adaptors::{Options, Pool};
use firsttouch::os::huge_page_size;
use firsttouch::sources::{Malloc, Pages};
use firsttouch::{Allocator, Request};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PURGER: &str = "firsttouch";
const MIB: usize = 1 << 20;

each_alone! {
    idle_memory_is_given_back_by_itself pools_that_rest_have_no_thread sparse_zeros_stay_sparse
}

fn pool(decay_ms: Option<u64>, max_idle: Option<usize>) -> Arc<Pool> {
    Pool::new(Options { decay: decay_ms.map(Duration::from_millis), max_idle, ..Options::default() })
}

/// A pool with segments of its own, and one over an upstream.
fn both(decay_ms: Option<u64>, max_idle: Option<usize>) -> [Arc<dyn Allocator>; 2] {
    let options = Options { decay: decay_ms.map(Duration::from_millis), max_idle, ..Options::default() };
    [Pool::new(options), Pool::over(Malloc::new(), options)]
}

fn wait(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Blocks of many sizes, all freed; bytes that are idle then.
fn leave_idle(pool: &dyn Allocator, bytes: usize) -> usize {
    let mut blocks = Vec::new();
    while pool.stats().active < bytes {
        blocks.push(Held::filled(pool, (40_000 << (blocks.len() % 9)) + blocks.len(), blocks.len() as u64));
    }
    drop(blocks);
    pool.stats().idle
}

fn idle_memory_is_given_back_by_itself() {
    let pool = pool(Some(500), None);
    let before = resident();
    let idle = leave_idle(&*pool, 200 * MIB);
    assert!(idle >= 200 * MIB && resident() > before + 190 * MIB);
    within("idle memory is gone", || pool.stats().idle == 0);
    // What is on its way is no longer idle, and not yet gone.
    within("the system has it back", || resident() < before + 8 * MIB);
    within("it was counted", || pool.stats().purged_bytes >= idle as u64);
}

#[test]
fn it_takes_at_least_as_long_as_was_said() {
    for (decay, least) in [(0, 0), (300, 150), (1000, 700), (2500, 2000)] {
        for pool in both(Some(decay), None) {
            let kept = Held::filled(&*pool, 5000, 9);
            leave_idle(&*pool, 20 * MIB);
            let took = within("idle memory is gone", || pool.stats().idle == 0).as_millis();
            assert!(took >= least, "{took} ms for {decay} ms");
            settles(&*pool, |stats| stats.purged_bytes >= 19 << 20);
            kept.give_back();
        }
    }
}

#[test]
fn what_is_kept_is_bounded() {
    for pool in both(None, Some(16 * MIB)) {
        leave_idle(&*pool, 100 * MIB);
        within("the bound holds", || pool.stats().idle <= 16 * MIB);
        wait(300);
        assert!(pool.stats().idle > 4 * MIB, "what is allowed is kept");
    }
}

/// Law 6: no thread before there is memory, none after it has gone, and none for sources that keep nothing.
fn pools_that_rest_have_no_thread() {
    let pools = [both(Some(200), None), both(Some(100), None), both(Some(0), Some(0))].concat();
    let pages = Pages::new(true);
    Held::filled(&*pages, 9 * MIB, 1).give_back();
    assert_eq!(threads_called(PURGER), 0);
    for round in 0..3 {
        let blocks: Vec<_> = pools.iter().map(|pool| Held::filled(&**pool, 3 * MIB, round)).collect();
        within("one looks after all", || threads_called(PURGER) == 1);
        wait(150);
        assert_eq!(threads_called(PURGER), 1);
        blocks.into_iter().for_each(Held::give_back);
        within("nobody is needed", || threads_called(PURGER) == 0);
    }
    drop(pools);
}

/// A large sparse array stays sparse, also where its memory was dense before, or partly given back.
fn sparse_zeros_stay_sparse() {
    if huge_page_size().is_some_and(|size| size > 2 * MIB) {
        return; // what is touched here would be most of the huge pages
    }
    let pool = pool(Some(1000), None);
    let before = resident();
    for size in [40 * MIB, 100 * MIB, 160 * MIB, 100 * MIB, 41 * MIB] {
        leave_idle(&*pool, size + 30 * MIB);
        let mut sparse = Held::new(&*pool, Request::zeroed(size)).unwrap();
        // `Held` has read all of it: zero pages are not resident memory, but huge zero pages are not counted either.
        for at in (0..size).step_by(16 * MIB) {
            sparse.bytes()[at] = 1;
        }
        pool.trim();
        let grown = resident().saturating_sub(before);
        assert!(grown < 26 * MIB, "{grown} bytes for a sparse array of {size}");
        sparse.fill(3);
        sparse.give_back();
    }
}

/// What grows in steps, each larger than the last, holds little more than it uses.
#[test]
fn growing_requests_do_not_pile_up() {
    let pool = pool(None, Some(usize::MAX));
    for step in 1..60 {
        Held::filled(&*pool, step * MIB + step * 4096, step as u64).give_back();
    }
    settles(&*pool, |stats| stats.peak_held <= 59 * MIB * 5 / 4 + 16 * MIB);
}

#[test]
fn old_holes_between_young_ones_go_first() {
    let pool = pool(Some(2000), None);
    let (mut old, mut young) = (Vec::new(), Vec::new());
    for seed in 0..400 {
        let blocks = if seed % 2 == 0 { &mut old } else { &mut young };
        blocks.push(Held::filled(&*pool, 100_000, seed));
    }
    let idle = |least: usize, most: usize| (least..=most).contains(&pool.stats().idle);
    drop(old);
    wait(1000);
    drop(young); // all of it is one span now, of many runs
    let freed = Instant::now();
    assert!(idle(39 * MIB, 42 * MIB) || freed.elapsed() > Duration::from_millis(700));
    within("half of it is gone", || idle(0, 22 * MIB));
    assert!(idle(18 * MIB, 22 * MIB) || freed.elapsed() > Duration::from_millis(1500), "the young half, too");
    within("all of it is gone", || pool.stats().idle == 0);
}

/// An eighth of the peak may be idle beside what is in use; programs whose turns are alike fault hardly anything in again.
#[test]
fn a_program_whose_turns_are_alike_faults_little_in_again() {
    let pool = Pool::new(Options::default());
    let turn = || {
        for (size, count) in [(9 * MIB, 5), (200_000, 20)] {
            let blocks: Vec<_> = (0..count).map(|seed| Held::filled(&*pool, size, seed)).collect();
            blocks.into_iter().for_each(Held::give_back);
        }
    };
    turn();
    let before = pool.stats();
    (0..12).for_each(|_| turn());
    let after = pool.stats();
    let again = after.refaulted_bytes - before.refaulted_bytes;
    assert!(again * 20 <= after.allocated_bytes - before.allocated_bytes, "{again} bytes");
    assert!(after.peak_held <= after.peak_active * 9 / 8 + 8 * MIB, "{after:?}");
}

#[test]
fn what_was_given_back_too_early_is_counted() {
    let pool = Pool::new(Options { huge: false, arrays: false, ..Options::default() });
    let size = 6 * MIB;
    for turn in 0..4 {
        Held::filled(&*pool, size, turn).give_back();
        pool.trim();
    }
    assert!((3 * size..3 * size + MIB).contains(&pool.taken_again()), "{}", pool.taken_again());
    let pool = Pool::new(Options { huge: false, arrays: false, ..Options::default() });
    let mut block = Held::filled(&*pool, size, 1);
    block.resize(3 * size).unwrap();
    assert_eq!(pool.taken_again(), 0, "growth takes nothing again");
}

/// Large zeroed requests give dirty memory back themselves, as the kernel clears faster: no decay would have kept it.
#[test]
fn what_a_zeroed_request_renews_was_not_given_back_too_early() {
    let pool = pool(None, None);
    for turn in 0..4 {
        let mut block = Held::new(&*pool, Request::zeroed(32 * MIB)).unwrap();
        block.fill(turn);
        block.give_back();
    }
    let stats = pool.stats();
    assert!(stats.first_touched_small_bytes + stats.first_touched_huge_bytes >= 4 * 28 * MIB as u64, "{stats:?}");
    assert_eq!(stats.refaulted_bytes, 0, "{stats:?}");
}
