//! Who leaves a guarded block stops at once, or is found by its canaries; huge pages and guards never meet.

#![allow(unsafe_code)] // Safety: wild accesses are the tests' subject; they happen in forked children or stay in a page.

mod common;

use common::alone::alone;
use common::forked::fork;
use common::held::Held;
use common::mapped::{inaccessible, is_advised_huge};
use common::process::settles;
use firsttouch::adaptors::{Filled, Guarded, GuardedOptions, Limited, Options, Overrun, Pool, Side, Tracked};
use firsttouch::os::{Call, fail_after};
use firsttouch::sources::{Aligned, Malloc, Pages};
use firsttouch::{Allocator, Request};
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::scope;

const PAGE: usize = 4096;
const HUGE: usize = 2 << 20;
const SIZES: [usize; 9] = [1, 64, 1000, PAGE, 3 * PAGE + 64, 100_000, HUGE - PAGE, HUGE, 3 * HUGE + 192];

fn upstreams() -> [Arc<dyn Allocator>; 6] {
    [
        Pages::new(false),
        Pages::new(true),
        Pool::new(Options::default()),
        Arc::new(Malloc),
        Arc::new(Aligned::new(PAGE).unwrap()),
        Pool::over(Limited::new(Pages::new(true), 1 << 40), Options::default()),
    ]
}

fn guarded(upstream: Arc<dyn Allocator>, side: Side, keep: usize) -> Arc<Guarded> {
    Guarded::new(upstream, GuardedOptions { side, keep })
}

fn write(address: usize) {
    // SAFETY: the test's own doing: what is there is inaccessible, a canary, or a block that the test holds.
    unsafe { with_exposed_provenance_mut::<u8>(address).write_volatile(7) }
}

fn read(address: usize) {
    // SAFETY: as above.
    unsafe { with_exposed_provenance_mut::<u8>(address).read_volatile() };
}

fn dies(body: impl FnOnce()) {
    assert_eq!(fork(body).signal(), Some(libc::SIGSEGV));
}

fn survives(body: impl FnOnce()) {
    assert_eq!(fork(body).signal(), None);
}

/// The first byte behind a block that a program can't touch.
fn guard_behind(block: &Held) -> usize {
    (block.address() + block.asked).next_multiple_of(64)
}

#[test]
fn writing_behind_stops() {
    alone("writing_behind_stops", || {
        for upstream in upstreams() {
            let guarded = guarded(upstream, Side::After, 0);
            for size in SIZES {
                let block = Held::filled(&*guarded, size, 1);
                survives(|| write(block.address() + size - 1));
                dies(|| write(guard_behind(&block)));
                dies(|| read(guard_behind(&block) + 1000));
                block.give_back();
            }
        }
    });
}

#[test]
fn writing_before_stops() {
    alone("writing_before_stops", || {
        for upstream in upstreams() {
            let guarded = guarded(upstream, Side::Before, 0);
            for size in SIZES {
                let block = Held::filled(&*guarded, size, 1);
                survives(|| write(block.address()));
                dies(|| write(block.address() - 1));
                dies(|| read(block.address() - PAGE));
                block.give_back();
            }
        }
    });
}

#[test]
fn aligned_blocks_are_guarded_too() {
    alone("aligned_blocks_are_guarded_too", || {
        for side in [Side::After, Side::Before] {
            let guarded = guarded(Pages::new(true), side, 0);
            for align in [128, PAGE, 1 << 16, HUGE, 1 << 24] {
                for size in [100, PAGE, 50_000, 2 * HUGE] {
                    let block = Held::new(&*guarded, Request::bytes(size).aligned(align).unwrap()).unwrap();
                    let end = (block.address() + size).next_multiple_of(align.min(PAGE));
                    let beyond = if size < HUGE { end } else { end.next_multiple_of(HUGE) };
                    dies(|| write(if side == Side::After { beyond } else { block.address() - 1 }));
                }
            }
        }
    });
}

#[test]
fn use_after_free_stops() {
    alone("use_after_free_stops", || {
        for upstream in upstreams() {
            for side in [Side::After, Side::Before] {
                let guarded = guarded(upstream.clone(), side, 20 << 20);
                let freed: Vec<_> = [1, 1000, PAGE, 50_000, HUGE]
                    .map(|size| {
                        let block = Held::filled(&*guarded, size, 1);
                        let address = block.address();
                        block.give_back();
                        (address, size)
                    })
                    .into();
                for &(address, size) in &freed {
                    dies(|| read(address));
                    dies(|| write(address + size - 1));
                }
                // Later blocks lie elsewhere.
                let later = Held::filled(&*guarded, 1000, 2);
                assert!(freed.iter().all(|&(address, size)| !(address..address + size).contains(&later.address())));
            }
        }
    });
}

/// What is kept is bounded, the oldest goes first, and all of it goes where it is needed.
#[test]
fn what_is_kept_is_bounded() {
    let upstream = Tracked::new(Pool::new(Options::default()), None);
    let guarded = guarded(upstream.clone(), Side::After, 1 << 20);
    for seed in 0..100 {
        Held::filled(&*guarded, 50_000, seed).give_back();
        assert!(upstream.tally().live_bytes <= 1 << 20);
    }
    assert!(upstream.tally().live_bytes > 900_000 && upstream.tally().live_blocks > 10);
    settles(&*guarded, |stats| (stats.blocks, stats.in_use, stats.active) == (0, 0, 0) && stats.idle > 900_000);
    Held::filled(&*guarded, 5 << 20, 1).give_back();
    assert!(upstream.tally().live_bytes <= 1 << 20, "what is larger than all that may be kept goes at once");
    guarded.trim();
    assert_eq!(upstream.tally().live_blocks, 0);
    Held::filled(&*guarded, 50_000, 1).give_back();
    assert_eq!(upstream.tally().live_blocks, 1);
    drop(guarded);
    assert_eq!(upstream.tally().live_blocks, 0);
}

#[test]
fn what_is_kept_goes_before_a_request_fails() {
    let limited = Limited::new(Arc::new(Malloc), 1_000_000);
    let guarded = guarded(limited.clone(), Side::After, 900_000);
    for seed in 0..50 {
        Held::filled(&*guarded, 300_000, seed).give_back();
    }
    assert!(limited.used() > 600_000);
    Held::filled(&*guarded, 900_000, 1).give_back();
    let error = Held::new(&*guarded, Request::bytes(1_000_000)).map(Held::leak).unwrap_err();
    assert_eq!((error.asked, error.limit_name()), (1_000_000, "limited"));
    assert_eq!(limited.used(), 0, "all was tried");
}

/// Small overruns that alignment leaves room for are found, once each.
#[test]
fn canaries_are_found() {
    for upstream in upstreams() {
        for side in [Side::After, Side::Before] {
            let guarded = guarded(upstream.clone(), side, 0);
            for size in [1, 63, 65, 1000, 5001, 100_001, 3 * HUGE + 1] {
                let block = Held::filled(&*guarded, size, 1);
                let (address, asked) = (block.address(), size);
                assert_eq!(guarded.check(), []);
                for at in [address + size, guard_behind(&block) - 1] {
                    write(at);
                    assert_eq!(guarded.check(), [Overrun { address, asked, at }]);
                    assert_eq!(guarded.check(), [], "it is told once");
                }
                write(address + size);
                block.give_back();
                assert_eq!(guarded.check(), [Overrun { address, asked, at: address + size }]);
                assert_eq!(guarded.check(), []);
            }
            assert_eq!(guarded.damaged(), 7);
        }
    }
}

#[test]
fn canaries_before_a_block_are_found() {
    let guarded = guarded(Pages::new(false), Side::After, 0);
    let block = Held::filled(&*guarded, 1000, 1);
    let at = block.address() - 1;
    write(at);
    write(at - 500);
    assert_eq!(guarded.check(), [Overrun { address: block.address(), asked: 1000, at }]);
}

#[test]
fn canaries_move_with_the_end() {
    for side in [Side::After, Side::Before] {
        let guarded = guarded(Pool::new(Options::default()), side, 0);
        let mut block = Held::filled(&*guarded, 1000, 1);
        for size in [970, 990, 1000, 961, 1010, 1024, 20, 3000, 100_000, 99_990] {
            block.resize(size).unwrap();
            assert_eq!(guarded.check(), [], "a block's own bytes are no canaries");
            if !size.is_multiple_of(64) {
                write(block.address() + size);
                let found = guarded.check();
                assert_eq!((found.len(), found[0].asked, found[0].at), (1, size, block.address() + size));
            }
        }
    }
}

/// No huge page that blocks may lie on has a guard in it.
#[test]
fn guards_and_huge_pages_never_meet() {
    alone("guards_and_huge_pages_never_meet", || {
        let shared: Arc<dyn Allocator> = Pool::new(Options::default());
        for upstream in
            [Pages::new(true) as Arc<dyn Allocator>, shared.clone(), Pool::over(Pages::new(true), Options::default())]
        {
            for side in [Side::After, Side::Before] {
                let guarded = guarded(upstream.clone(), side, 0);
                let mut blocks = Vec::new();
                for round in 0..3 {
                    for size in [HUGE - 2 * PAGE, HUGE - PAGE, HUGE - 64, HUGE, HUGE + 1, 3 * HUGE, 5 * HUGE - 1, 9000]
                    {
                        drop(Held::filled(&*upstream, HUGE, round));
                        blocks.push(Held::filled(&*guarded, size, round));
                        drop(Held::filled(&*upstream, size, round));
                    }
                }
                // Small blocks too, where a pool hands out such memory again for them.
                for block in blocks.iter().filter(|block| block.asked >= HUGE || is_advised_huge(block.address())) {
                    let (from, to) = (block.address(), block.address() + block.asked);
                    let whole = from / HUGE * HUGE..to.next_multiple_of(HUGE);
                    assert_eq!(inaccessible(whole.clone()), 0, "{} bytes at {from:x}", block.asked);
                    assert!(inaccessible(whole.start - HUGE..whole.end + HUGE) >= HUGE, "a whole huge page");
                }
            }
        }
    });
}

#[test]
fn large_blocks_stay_lazy() {
    alone("large_blocks_stay_lazy", || {
        let before = common::process::resident();
        for side in [Side::After, Side::Before] {
            let guarded = guarded(Pages::new(false), side, 0);
            let _block = guarded.allocate(Request::zeroed(1 << 30)).unwrap();
            let _other = guarded.allocate(Request::bytes((1 << 30) + 1)).unwrap();
        }
        assert!(common::process::resident() < before + (4 << 20));
    });
}

/// Where no page can be made inaccessible, nothing is served unguarded, and where it can't be made accessible again,
/// nothing is lost.
#[test]
fn a_system_that_refuses() {
    alone("a_system_that_refuses", || {
        let upstream = Tracked::new(Pool::new(Options::default()), None);
        for keep in [0, 1 << 20] {
            let guarded = guarded(upstream.clone(), Side::After, keep);
            fail_after(&[Call::Protect], 0, i64::MAX / 2);
            let error = Held::new(&*guarded, Request::bytes(1000)).map(Held::leak).unwrap_err();
            fail_after(&[], 0, 0);
            assert_eq!((error.asked, upstream.tally().live_blocks), (1000, 0));
            let blocks: Vec<_> = (0..50).map(|seed| Held::filled(&*guarded, 10_000, seed)).collect();
            fail_after(&[Call::Protect], 3, i64::MAX / 2);
            drop(blocks);
            fail_after(&[], 0, 0);
            assert!(upstream.tally().live_blocks > 40);
            Held::filled(&*guarded, 10_000, 1).give_back();
            guarded.trim();
            assert_eq!(upstream.tally().live_blocks, 0);
        }
    });
}

#[test]
fn forks_in_a_storm() {
    alone("forks_in_a_storm", || {
        let filled = Filled::new(guarded(Pool::new(Options::default()), Side::After, 1 << 20), Some(1), Some(2));
        let stop = AtomicBool::new(false);
        let mine: Vec<_> = (0..6).map(|n| Held::filled(&*filled, 900 << n, n)).collect();
        scope(|threads| {
            for seed in 0..2 {
                let (filled, stop) = (&filled, &stop);
                threads.spawn(move || {
                    while !stop.load(Relaxed) {
                        let blocks: Vec<_> = (0..9).map(|n| Held::filled(&**filled, 500 << n, seed + n)).collect();
                        blocks.into_iter().for_each(Held::give_back);
                        filled.trim();
                    }
                });
            }
            for round in 0..60 {
                let child = fork(|| {
                    mine.iter().for_each(Held::check);
                    Held::filled(&*filled, 70_000, round).give_back();
                    filled.trim();
                });
                child.join();
                dies(|| write(guard_behind(&mine[3])));
            }
            stop.store(true, Relaxed);
        });
        mine.into_iter().for_each(Held::give_back);
    });
}
