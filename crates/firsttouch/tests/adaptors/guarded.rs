//! Accesses beyond a guarded block fault at once; overruns too small to reach the guard are found by the canaries, at their
//! exact address; guards never split huge pages.

use super::common::alone::alone;
use super::common::held::Held;
use super::common::mapped::{inaccessible, is_advised_huge};
use super::common::process::settles;
use super::common::wild::{dies, guard_behind, read, survives, write};
use firsttouch::adaptors::{Guarded, GuardedOptions, Limited, Options, Overrun, Pool, Side, Tracked};
use firsttouch::os::{Call, fail_after, huge_page_size, mapping_limit, page_size};
use firsttouch::sources::{Calloc, Malloc, Pages};
use firsttouch::{Allocator, Request};
use std::sync::Arc;

fn huge() -> usize {
    huge_page_size().unwrap_or(2 << 20)
}
fn sizes() -> [usize; 9] {
    [1, 64, 1000, page_size(), 3 * page_size() + 64, 100_000, huge() - page_size(), huge(), 3 * huge() + 192]
}

fn upstreams() -> [Arc<dyn Allocator>; 6] {
    [
        Pages::new(false),
        Pages::new(true),
        Pool::new(Options::default()),
        Arc::new(Malloc),
        Calloc::aligned(page_size()).unwrap(),
        Pool::over(Limited::new(Pages::new(true), 1 << 40), Options::default()),
    ]
}

fn guarded(upstream: Arc<dyn Allocator>, side: Side, keep: usize) -> Arc<Guarded> {
    Guarded::new(upstream, GuardedOptions { side, keep })
}

#[test]
fn writing_behind_stops() {
    alone("guarded::writing_behind_stops", || {
        for upstream in upstreams() {
            let guarded = guarded(upstream, Side::After, 0);
            for size in sizes() {
                let block = Held::filled(&*guarded, size, 1);
                survives(|| write(block.address() + size - 1));
                let guard = guard_behind(&block).next_multiple_of(guarded.alignment());
                dies(|| write(guard));
                dies(|| read(guard + 1000));
                block.give_back();
            }
        }
    });
}

#[test]
fn the_alignment_of_the_upstream_is_kept() {
    for align in [256, page_size(), 1 << 20] {
        for side in [Side::After, Side::Before] {
            let guarded = guarded(Tracked::new(Calloc::aligned(align).unwrap()), side, 0);
            for size in sizes() {
                let block = Held::filled(&*guarded, size, 1);
                assert_eq!(block.address() % align, 0, "{size} bytes, {side:?}");
                block.give_back();
            }
        }
    }
}

#[test]
fn writing_before_stops() {
    alone("guarded::writing_before_stops", || {
        for upstream in upstreams() {
            let guarded = guarded(upstream, Side::Before, 0);
            for size in sizes() {
                let block = Held::filled(&*guarded, size, 1);
                survives(|| write(block.address()));
                dies(|| write(block.address() - 1));
                dies(|| read(block.address() - page_size()));
                block.give_back();
            }
        }
    });
}

#[test]
fn aligned_blocks_are_guarded_too() {
    alone("guarded::aligned_blocks_are_guarded_too", || {
        for side in [Side::After, Side::Before] {
            let guarded = guarded(Pages::new(true), side, 0);
            for align in [128, page_size(), 1 << 16, huge(), 1 << 24] {
                for size in [100, page_size(), 50_000, 2 * huge()] {
                    let block = Held::new(&*guarded, Request::bytes(size).aligned(align).unwrap()).unwrap();
                    let end = (block.address() + size).next_multiple_of(align.min(page_size()));
                    let beyond = if size < huge() { end } else { end.next_multiple_of(huge()) };
                    dies(|| write(if side == Side::After { beyond } else { block.address() - 1 }));
                }
            }
        }
    });
}

#[test]
fn use_after_free_stops() {
    alone("guarded::use_after_free_stops", || {
        for upstream in upstreams() {
            for side in [Side::After, Side::Before] {
                let guarded = guarded(upstream.clone(), side, 20 << 20);
                let freed: Vec<_> = [1, 1000, page_size(), 50_000, huge()]
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
    let upstream = Tracked::new(Pool::new(Options::default()));
    let guarded = guarded(upstream.clone(), Side::After, 1 << 20);
    for seed in 0..100 {
        Held::filled(&*guarded, 50_000, seed).give_back();
        assert!(upstream.stats().in_use <= 1 << 20);
    }
    assert!(upstream.stats().in_use > 900_000 && upstream.stats().blocks > 10);
    settles(&*guarded, |stats| (stats.blocks, stats.in_use, stats.active) == (0, 0, 0) && stats.idle > 900_000);
    Held::filled(&*guarded, 5 << 20, 1).give_back();
    assert!(upstream.stats().in_use <= 1 << 20, "what is larger than all that may be kept goes at once");
    guarded.trim();
    assert_eq!(upstream.stats().blocks, 0);
    Held::filled(&*guarded, 50_000, 1).give_back();
    assert_eq!(upstream.stats().blocks, 1);
    drop(guarded);
    assert_eq!(upstream.stats().blocks, 0);
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

/// No huge page that blocks may lie on has a guard in it.
#[test]
fn guards_and_huge_pages_never_meet() {
    alone("guarded::guards_and_huge_pages_never_meet", || {
        let shared: Arc<dyn Allocator> = Pool::new(Options::default());
        for upstream in
            [Pages::new(true) as Arc<dyn Allocator>, shared.clone(), Pool::over(Pages::new(true), Options::default())]
        {
            for side in [Side::After, Side::Before] {
                let guarded = guarded(upstream.clone(), side, 0);
                let mut blocks = Vec::new();
                for round in 0..if huge() > 2 << 20 { 1 } else { 3 } {
                    for size in [
                        huge() - 2 * page_size(),
                        huge() - page_size(),
                        huge() - 64,
                        huge(),
                        huge() + 1,
                        3 * huge(),
                        5 * huge() - 1,
                        9000,
                    ] {
                        drop(Held::filled(&*upstream, huge(), round));
                        blocks.push(Held::filled(&*guarded, size, round));
                        drop(Held::filled(&*upstream, size, round));
                    }
                }
                // Small blocks too, where a pool hands out such memory again for them.
                for block in blocks.iter().filter(|block| block.asked >= huge() || is_advised_huge(block.address())) {
                    let (from, to) = (block.address(), block.address() + block.asked);
                    let whole = from / huge() * huge()..to.next_multiple_of(huge());
                    assert_eq!(inaccessible(whole.clone()), 0, "{} bytes at {from:x}", block.asked);
                    assert!(inaccessible(whole.start - huge()..whole.end + huge()) >= huge(), "a whole huge page");
                }
            }
        }
    });
}

#[test]
fn large_blocks_stay_lazy() {
    alone("guarded::large_blocks_stay_lazy", || {
        let before = super::common::process::resident();
        for side in [Side::After, Side::Before] {
            let guarded = guarded(Pages::new(false), side, 0);
            let _block = guarded.allocate(Request::zeroed(1 << 30)).unwrap();
            let _other = guarded.allocate(Request::bytes((1 << 30) + 1)).unwrap();
        }
        assert!(super::common::process::resident() < before + 2 * huge());
    });
}

/// Where no page can be made inaccessible, nothing is served unguarded, and where it can't be made accessible again,
/// nothing is lost.
#[test]
fn a_system_that_refuses() {
    alone("guarded::a_system_that_refuses", || {
        let upstream = Tracked::new(Pool::new(Options::default()));
        for keep in [0, 1 << 20] {
            let guarded = guarded(upstream.clone(), Side::After, keep);
            fail_after(&[Call::Protect], 0, i64::MAX / 2);
            let error = Held::new(&*guarded, Request::bytes(1000)).map(Held::leak).unwrap_err();
            fail_after(&[], 0, 0);
            assert_eq!((error.asked, upstream.stats().blocks), (1000, 0));
            let blocks: Vec<_> = (0..50).map(|seed| Held::filled(&*guarded, 10_000, seed)).collect();
            fail_after(&[Call::Protect], 3, i64::MAX / 2);
            drop(blocks);
            fail_after(&[], 0, 0);
            assert!(upstream.stats().blocks > 40);
            Held::filled(&*guarded, 10_000, 1).give_back();
            guarded.trim();
            assert_eq!(upstream.stats().blocks, 0);
        }
    });
}

/// Blocks beyond the system's limit of mappings have no guard, and are served all the same; canaries stay.
#[test]
fn beyond_the_limit_of_mappings_blocks_are_unguarded() {
    alone("guarded::beyond_the_limit_of_mappings_blocks_are_unguarded", || {
        let limit = mapping_limit().unwrap_or(usize::MAX);
        if limit > 300_000 {
            return; // this would take too much memory
        }
        for (upstream, side) in
            [(Pages::new(false) as Arc<dyn Allocator>, Side::After), (Arc::new(Malloc), Side::Before)]
        {
            let guarded = guarded(upstream, side, 0);
            let count = limit / 2 + 2000;
            let blocks: Vec<_> = (0..count).map(|n| Held::filled(&*guarded, 24 + n % 7, n as u64)).collect();
            assert!(blocks.iter().all(|block| block.is_known() == Some(true)));
            assert!(std::thread::spawn(|| 1).join().is_ok(), "what else the process maps");
            dies(|| {
                write(if side == Side::After { blocks[0].address() + page_size() } else { blocks[0].address() - 1 })
            });
            assert_eq!(guarded.check(), []);
            drop(blocks);
            let again = Held::filled(&*guarded, 1000, 1);
            dies(|| write(if side == Side::After { again.address() + page_size() } else { again.address() - 1 }));
        }
    });
}

/// Small overruns that alignment leaves room for are found, once each.
#[test]
fn canaries_are_found() {
    for upstream in upstreams() {
        for side in [Side::After, Side::Before] {
            let guarded = guarded(upstream.clone(), side, 0);
            for size in [1, 63, 65, 1000, 5001, 100_001, 3 * huge() + 1] {
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
