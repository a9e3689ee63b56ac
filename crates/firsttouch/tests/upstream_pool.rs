//! A pool over any upstream: blocks are reused, and what is kept is bounded and returned.

#![cfg(target_os = "linux")]

mod common;

use common::alone::alone;
use common::counted;
use common::forked::fork;
use common::held::Held;
use common::process::within;
use common::reentrant::Reentrant;
use firsttouch::adaptors::{Limited, Options, Pool, huge_min};
use firsttouch::pages::placement::{Page, Placement};
use firsttouch::sources::{Malloc, Pages};
use firsttouch::{Allocator, Request};
use std::sync::Arc;
use std::time::Duration;

const MIB: usize = 1 << 20;
const FOREVER: Options = Options { max_idle: Some(usize::MAX), decay: None, huge: true, arrays: true };

/// A pool, and what its upstream sees of it.
fn pool(options: Options) -> (Arc<dyn Allocator>, Arc<Limited>) {
    let upstream = counted();
    (Pool::over(upstream.clone(), options), upstream)
}

#[test]
fn blocks_are_used_again() {
    let (pool, upstream) = pool(FOREVER);
    for size in [100, 5000, 70_000, 3 * MIB] {
        let first = Held::filled(&*pool, size, 1);
        let address = first.address();
        first.give_back();
        let asked = upstream.stats().allocations;
        for other in [size, size - size / 10, size * 8 / 9 + 1] {
            let block = Held::filled(&*pool, other, 2);
            assert_eq!(block.address(), address, "{other} bytes in {size}");
            block.give_back();
        }
        assert_eq!(upstream.stats().allocations, asked);
        // Larger, or so small that more than an eighth would be wasted.
        for (more, other) in [size + 1, size * 8 / 9 - 1].into_iter().enumerate() {
            Held::filled(&*pool, other, 3).give_back();
            assert_eq!(upstream.stats().allocations, asked + 1 + more as u64, "{other} bytes in {size}");
        }
        pool.trim();
    }
    let stats = pool.stats();
    assert_eq!((stats.recycled, stats.allocations), (12, 24));
}

/// Of two huge pages behind 2.25 MiB nearly half is lost. That is no reason to lose them at every turn.
#[test]
fn blocks_that_the_upstream_rounds_up_are_used_again() {
    let placement = Placement { page: Page::Transparent, ..Placement::default() };
    let pool = Pool::over(Pages::placed(placement), FOREVER);
    for size in [9 * MIB / 4, 20_000] {
        Held::filled(&*pool, size, 1).give_back();
        let recycled = pool.stats().recycled;
        Held::filled(&*pool, size, 2).give_back();
        assert_eq!(pool.stats().recycled, recycled + 1, "{size} bytes");
    }
}

#[test]
fn the_warmest_comes_first() {
    let (pool, _) = pool(FOREVER);
    let blocks: Vec<_> = (0..20).map(|n| Held::filled(&*pool, 100_000 + n * 100, 1)).collect();
    let addresses: Vec<_> = blocks.iter().map(Held::address).collect();
    blocks.into_iter().for_each(Held::give_back);
    let again: Vec<_> = (0..20).map(|_| Held::filled(&*pool, 100_000, 2)).collect();
    assert!(again.iter().map(Held::address).eq(addresses.into_iter().rev()));
}

/// The upstream's budget is full of the pool's own idle blocks: they go back, and the request is served.
#[test]
fn a_budget_full_of_idle_blocks() {
    let limited = Limited::new(Malloc::new(), 10 * MIB);
    let pool = Pool::over(limited.clone(), FOREVER);
    let living = Held::filled(&*pool, 2 * MIB, 7);
    for round in 0..5 {
        let blocks: Vec<_> = (0..8).map(|n| Held::filled(&*pool, MIB - n * 1000, round)).collect();
        blocks.into_iter().for_each(Held::give_back);
        assert!(limited.used() > 9 * MIB);
        Held::filled(&*pool, 8 * MIB, round).give_back();
        let mut growing = Held::filled(&*pool, MIB, round);
        growing.resize(4 * MIB).unwrap();
        growing.give_back();
    }
    let error = Held::new(&*pool, Request::bytes(8 * MIB + 1)).map(Held::leak).unwrap_err();
    assert_eq!((error.asked, error.limit_name(), pool.stats().failures), (8 * MIB + 1, "limited", 1));
    assert_eq!(limited.used(), 2 * MIB, "all that was idle went back before");
    living.give_back();
}

/// An upstream that runs foreign code is called by no purger and in no fork; its blocks go back as the pool is used.
#[test]
fn an_upstream_may_use_the_library() {
    alone("an_upstream_may_use_the_library", || {
        let upstream = Limited::new(Reentrant::shared(), 1 << 40);
        let quick = Options { decay: Some(Duration::from_millis(100)), ..Options::default() };
        let pool = Pool::over(upstream.clone(), quick);
        let blocks: Vec<_> = (0..10).map(|n| Held::filled(&*pool, 40_000, n)).collect();
        blocks.into_iter().for_each(Held::give_back);
        fork(|| assert!(pool.stats().idle > 0, "nobody is called within a fork")).join();
        within("idle blocks go back", || {
            Held::filled(&*pool, 10_000, 1).give_back();
            upstream.used() < 40_000
        });
    });
}

/// What may be idle, or for how long, holds where it is said: the bound by the most ever active is for those who say
/// nothing.
#[test]
fn explicit_options_are_obeyed() {
    alone("explicit_options_are_obeyed", || {
        // Filling takes longer than the default decay where a processor is emulated.
        for options in
            [FOREVER, Options { max_idle: Some(1 << 30), decay: Some(Duration::from_secs(20)), ..Options::default() }]
        {
            for pool in [Pool::over(Malloc::new(), options), Pool::new(options)] {
                let small: Vec<_> = (0..60).map(|n| Held::filled(&*pool, 500_000, n)).collect();
                small.into_iter().for_each(Held::give_back);
                let large = Held::filled(&*pool, huge_min(false).max(48 * MIB), 1); // larger than all that is idle
                let idle = pool.stats().idle;
                assert!(idle >= 60 * 500_000, "{idle}");
                large.give_back();
            }
        }
    });
}
