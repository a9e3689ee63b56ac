//! What a pool keeps is learned: a program whose iterations are alike soon faults in nothing that it gave back.

mod common;

use common::alone::alone;
use common::held::Held;
use common::process::{resident, within};
use firsttouch::Allocator;
use firsttouch::adaptors::{Options, Pool, huge_min};
use std::time::Duration;

const MIB: usize = 1 << 20;

/// One turn: blocks of one region, then of the other, so that each region has its peak while the other idles. The small ones
/// are too small for idle huge pages to serve them.
fn turn(pool: &dyn Allocator, live: &[Held<'_>]) {
    for (size, count) in [(9 * MIB, 5), (200_000, 210)] {
        let blocks: Vec<_> = (0..count).map(|seed| Held::filled(pool, size, seed)).collect();
        blocks.into_iter().for_each(Held::give_back);
    }
    live.iter().for_each(Held::check);
}

#[test]
fn a_program_whose_turns_are_alike_faults_nothing_in_again() {
    if huge_min(false) > 9 * MIB {
        return; // all blocks of a turn have the same pages
    }
    let pool = Pool::new(Options::default());
    let live: Vec<_> = (0..8).map(|seed| Held::filled(&*pool, 9 * MIB, seed)).collect();
    let turns = |count: usize| {
        let before = pool.stats();
        (0..count).for_each(|_| turn(&*pool, &live));
        let after = pool.stats();
        (after.refaulted_bytes - before.refaulted_bytes, after.allocated_bytes - before.allocated_bytes)
    };
    let (learning, _) = turns(6);
    let (again, allocated) = turns(12);
    assert!(learning > 0, "there was nothing to learn");
    assert!(again * 20 <= allocated, "{again} of {allocated} bytes");
    let stats = pool.stats();
    assert!(stats.peak_held <= stats.peak_active * 135 / 100 + 8 * MIB, "{stats:?}");
    live.into_iter().for_each(Held::give_back);
    within(Duration::from_secs(5), "idle memory is gone", || pool.stats().idle == 0);
}

#[test]
fn idle_huge_pages_serve_smaller_blocks_before_fresh_memory_does() {
    if huge_min(false) > 9 * MIB {
        return;
    }
    let pool = Pool::new(Options::default());
    Held::filled(&*pool, 9 * MIB, 1).give_back();
    let fresh = || pool.stats().first_touched_small_bytes;
    let before = fresh();
    let _blocks: Vec<_> = (0..10).map(|seed| Held::filled(&*pool, 700_000, seed)).collect();
    assert_eq!(fresh(), before);
}

#[test]
fn a_pause_that_was_longer_than_decay_is_waited_for_next_time() {
    let pool = Pool::new(Options::default());
    let mut fresh = Vec::new();
    for seed in 0..4 {
        let before = pool.stats().first_touched_huge_bytes;
        Held::filled(&*pool, 64 * MIB, seed).give_back();
        fresh.push(pool.stats().first_touched_huge_bytes - before);
        std::thread::sleep(Duration::from_millis(1400));
    }
    assert!(fresh[1] >= 60 << 20, "{fresh:?}: what has decayed is faulted in again");
    assert_eq!(fresh[2..], [0, 0], "{fresh:?}");
    within(Duration::from_secs(3), "idle memory is gone", || pool.stats().idle == 0);
}

#[test]
fn what_is_said_of_decay_is_obeyed() {
    let decay = Some(Duration::from_millis(300));
    let pool = Pool::new(Options { decay, ..Options::default() });
    for seed in 0..4 {
        Held::filled(&*pool, 32 * MIB, seed).give_back();
        std::thread::sleep(Duration::from_millis(700));
        assert_eq!(pool.stats().idle, 0);
        // The background purger may still be about to count what it has given back.
        let counted = || pool.stats().purged_bytes >= (seed + 1) * (32 << 20);
        within(Duration::from_secs(5), "it is counted", counted);
    }
    assert!(pool.stats().refaulted_bytes >= 90 << 20, "{:?}", pool.stats());
}

#[test]
fn what_survives_here_and_there_holds_no_huge_pages() {
    alone("what_survives_here_and_there_holds_no_huge_pages", || {
        let pool = Pool::new(Options::default());
        let before = resident();
        let mut blocks: Vec<_> = (0..120).map(|seed| Held::filled(&*pool, 1_200_000, seed)).collect();
        let mut number = 0;
        blocks.retain(|_| (number += 1, number % 4 == 0).1);
        within(Duration::from_secs(5), "the rest is gone", || resident() < before + 50 * MIB);
        blocks.iter().for_each(Held::check);
        let again: Vec<_> = (0..90).map(|seed| Held::filled(&*pool, 1_200_000, seed)).collect();
        assert!(pool.stats().mapped < 200 * MIB, "{:?}", pool.stats());
        drop(again);
    });
}

#[test]
fn what_blocks_grow_by_is_held_as_well() {
    let pool = Pool::new(Options::default());
    let size = huge_min(false).max(2 * MIB); // smaller blocks cannot grow into huge pages
    let mut block = Held::filled(&*pool, size, 1);
    assert!(block.resize_in_place(10 * size));
    block.give_back();
    pool.trim();
    let stats = pool.stats();
    assert!(stats.peak_held >= stats.peak_active && stats.peak_active >= 10 * size, "{stats:?}");
}
