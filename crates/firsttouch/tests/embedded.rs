//! mimalloc and jemalloc as sources: the owner and the origin of their memory, and that it is returned.

#![cfg(any(feature = "mimalloc", feature = "jemalloc"))]

mod common;

use common::alone::alone;
use common::forked::{fork, in_thread};
use common::held::Held;
use common::limits;
use common::mapped::{foreign, unmap};
use common::process::{address_space, resident, threads_called, within};
use firsttouch::allocator::Limit;
use firsttouch::os::{Call, fail_after};
use firsttouch::vm::address_map;
use firsttouch::{Allocator, Request, failure};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::Duration;

type Make = fn() -> Arc<dyn Allocator>;

/// Each test for each source, in a process of its own, since a process has one of each.
macro_rules! each {
    ($(#[$when:meta] $name:ident: $make:expr;)*) => {$(
        #[$when]
        mod $name {
            use super::*;

            const MAKE: Make = || $make;

            each!(@tests $name blocks_are_ours, idle_memory_is_given_back, temporaries_stay, little_address_space, room_for_others,
                purger_takes_no_room, nothing_left, purged_reads_zero, locked_memory_reads_zero,
                forks_among_threads, threads_that_end, systems_that_fail);

            #[test]
            fn no_place_of_its_own() {
                alone(concat!(stringify!($name), "::no_place_of_its_own"), || super::no_place_of_its_own(MAKE));
            }
        }
    )*};
    (@tests $name:ident $($test:ident),*) => {$(
        #[test]
        fn $test() {
            alone(concat!(stringify!($name), "::", stringify!($test)), || super::$test(&*MAKE()));
        }
    )*};
}

each! {
    #[cfg(feature = "mimalloc")] mimalloc: firsttouch::sources::Mimalloc::get().unwrap();
    #[cfg(feature = "jemalloc")] jemalloc: firsttouch::sources::Jemalloc::get().unwrap();
}

fn blocks_are_ours(source: &dyn Allocator) {
    for size in [1, 100, 4096, 40_000, 300_000, 1 << 20, (4 << 20) + 1, 40 << 20, 1 << 30] {
        for align in [64, 4096, 64 << 10, 2 << 20, 1 << 30] {
            let block = Held::new(source, Request::bytes(size).aligned(align).unwrap()).unwrap();
            for at in [block.address(), block.address() + size - 1] {
                assert_eq!(address_map::owner(at).map(Allocator::expression), Some(source.expression()));
            }
        }
    }
    assert!(source.in_segments());
}

fn idle_memory_is_given_back(source: &dyn Allocator) {
    let kept = Held::filled(source, 1 << 20, 1);
    let before = resident();
    let blocks: Vec<_> = (0..100).map(|seed| Held::filled(source, 2 << 20, seed)).collect();
    assert!(resident() > before + (190 << 20));
    drop(blocks);
    within(Duration::from_secs(5), "200 MiB are given back", || resident() < before + (4 << 20));
    within(Duration::from_secs(5), "nothing is idle", || source.stats().idle == 0);
    kept.give_back();
    within(Duration::from_secs(5), "nobody looks after nothing", || threads_called("firsttouch") == 0);
    Held::filled(source, 8 << 20, 3).give_back();
    within(Duration::from_secs(1), "somebody looks after it", || threads_called("firsttouch") == 1);
}

/// What a program allocates and frees again and again is not taken from under it.
fn temporaries_stay(source: &dyn Allocator) {
    let began = std::time::Instant::now();
    let before = source.stats().purged_bytes;
    while began.elapsed() < Duration::from_secs(3) {
        let blocks: Vec<_> = (0..3).map(|seed| Held::filled(source, 16 << 20, seed)).collect();
        blocks.into_iter().for_each(Held::give_back);
    }
    let purged = source.stats().purged_bytes - before;
    assert!(purged <= 48 << 20, "{purged} bytes were given back");
}

/// A bound of the process's own peak and a fifth of it, as law 12 says.
fn little_address_space(source: &dyn Allocator) {
    limits::set(libc::RLIMIT_AS, address_space() + (40 << 20));
    for round in 0..50 {
        Held::filled(source, (20 << 20) + round * 4096, round as u64).give_back();
        Held::zeros(source, 100_000).check_zero();
    }
}

/// Others, who ask the system, find what was freed just now.
fn room_for_others(source: &dyn Allocator) {
    limits::set(libc::RLIMIT_AS, address_space() + (130 << 20));
    for round in 0..5 {
        Held::filled(source, 90 << 20, round).give_back();
        unmap(foreign(0, 100 << 20).expect("it was given back"));
    }
}

/// Nor does the purger's thread take it: in its first window it looks after what is kept.
fn purger_takes_no_room(source: &dyn Allocator) {
    limits::set(libc::RLIMIT_AS, address_space() + (200 << 20));
    let kept = Held::filled(source, 1 << 20, 1);
    std::thread::sleep(Duration::from_secs(1));
    unmap(foreign(0, 180 << 20).expect("only 1 MiB is in use"));
    kept.give_back();
}

fn nothing_left(source: &dyn Allocator) {
    let living = Held::filled(source, 1 << 20, 5);
    limits::set(libc::RLIMIT_AS, address_space() + (24 << 20));
    for size in [64 << 20, 700 << 20, 4 << 30] {
        let error = Held::new(source, Request::bytes(size)).err().expect("more than is allowed");
        assert_eq!(error.asked, size);
        assert!(matches!(error.limit, Limit::AddressSpace { .. }), "{error}");
        assert_eq!(failure::last(), Some(error));
    }
    let mut small = Vec::new();
    while let Ok(mut block) = Held::new(source, Request::bytes(30_000)) {
        block.fill(small.len() as u64);
        small.push(block);
    }
    assert!(small.len() > 100, "{}", small.len());
    drop(small);
    for _ in 0..20 {
        Held::filled(source, 8 << 20, 6).give_back();
    }
    living.give_back();
}

/// Where the kernel grants no addresses, memory comes from wherever there is room, and is all mapped at once.
fn no_place_of_its_own(make: Make) {
    fail_after(&[Call::Map], 0, 4);
    let source = &*make();
    let first = Held::filled(source, 1 << 20, 1);
    fail_after(&[], 0, 0);
    assert!(first.address() >> 40 > 40, "{:#x} is none of the places that are claimed", first.address());
    let blocks: Vec<_> = (0..40).map(|seed| Held::filled(source, 100 << (seed % 16), seed)).collect();
    let more: Vec<_> = (0..40).map(|seed| Held::filled(source, 3000 << (seed % 12), seed)).collect();
    common::held::check_apart(blocks.iter().chain(&more));
    purged_reads_zero(source);
    assert_eq!(address_map::owner(first.address()).map(Allocator::expression), Some(source.expression()));
}

fn purged_reads_zero(source: &dyn Allocator) {
    for round in 0..20u64 {
        let blocks: Vec<_> = (0..60).map(|n| Held::filled(source, 700 << ((n + round) % 13), n)).collect();
        blocks.into_iter().for_each(Held::give_back);
        if round % 2 == 0 {
            source.trim();
        }
        for n in 0..60 {
            let mut block = Held::zeros(source, 900 << ((n * 7 + round) % 13));
            block.check_zero();
            block.fill(n);
        }
    }
}

fn locked_memory_reads_zero(source: &dyn Allocator) {
    limits::lock_future();
    purged_reads_zero(source);
    fail_after(&[Call::Unmap, Call::Discard], 0, i64::MAX);
    purged_reads_zero(source);
    fail_after(&[], 0, 0);
}

fn forks_among_threads(source: &dyn Allocator) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for thread in 0..3u64 {
            let stop = &stop;
            threads.spawn(move || {
                let mut turn = thread;
                while !stop.load(Relaxed) {
                    turn += 1;
                    let blocks: Vec<_> = (0..8).map(|n| Held::filled(source, 900 << ((n + turn) % 13), n)).collect();
                    drop(blocks);
                    // What a thread keeps goes as it ends, in the middle of somebody's fork.
                    let short = || (0..40).for_each(|n| Held::filled(source, 100 << (n % 12), n).give_back());
                    std::thread::scope(|threads| drop(threads.spawn(short)));
                }
            });
        }
        let left = Held::filled(source, 5 << 20, 9);
        for round in 0..40 {
            let child = fork(|| {
                left.check();
                let blocks: Vec<_> = (0..30).map(|n| Held::filled(source, 500 << (n % 14), n)).collect();
                in_thread(|| Held::zeros(source, 3 << 20).check_zero());
                blocks.into_iter().for_each(Held::give_back);
                source.trim();
            });
            Held::filled(source, 1 << 20, round).give_back();
            child.join();
        }
        stop.store(true, Relaxed);
    });
}

fn threads_that_end(source: &dyn Allocator) {
    for round in 0..20 {
        let barrier = Barrier::new(4);
        let left: Vec<_> = std::thread::scope(|threads| {
            let body = |seed: u64| {
                let blocks: Vec<_> = (0..20).map(|n| Held::filled(source, 64 << ((n + seed) % 16), n)).collect();
                barrier.wait();
                blocks
            };
            let started: Vec<_> = (0..4).map(|seed| threads.spawn(move || body(seed + round))).collect();
            started.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        common::held::check_apart(&left);
        left.into_iter().for_each(Held::give_back);
    }
    source.trim();
    let stats = source.stats();
    assert_eq!((stats.active, stats.idle), (0, 0));
}

/// Each call to the system fails once, and then again and again: requests fail or are served, and nothing is lost.
fn systems_that_fail(source: &dyn Allocator) {
    let living = Held::filled(source, 300_000, 1);
    for call in [Call::Map, Call::Unmap, Call::Discard, Call::AdviseHuge, Call::Spawn] {
        for pass in 0..12 {
            for fail in [1, 3, i64::MAX] {
                fail_after(&[call], pass, fail);
                let blocks: Vec<_> =
                    (0..12).filter_map(|n| Held::new(source, Request::zeroed(3000 << n)).ok()).collect();
                source.trim();
                fail_after(&[], 0, 0);
                blocks.into_iter().for_each(|mut block| {
                    block.check_zero();
                    block.fill(7);
                    block.give_back();
                });
                source.trim();
            }
        }
    }
    Held::zeros(source, 50 << 20).check_zero();
    living.give_back();
}
