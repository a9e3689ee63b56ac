//! mimalloc and jemalloc as sources: beside the contract, what a library of its own could break.

#![cfg(target_os = "linux")]
#![cfg(any(feature = "mimalloc", feature = "jemalloc"))]
#![allow(unsafe_code)] // Safety: blocks of malloc that nobody uses.

mod common;

use common::alone::alone;
use common::forked::{fork, in_thread};
use common::held::Held;
use common::limits;
use common::process::address_space;
use firsttouch::allocator::Limit;
use firsttouch::{Allocator, Request, failure};
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Each test for each source, in a process of its own, since a process has one of each.
macro_rules! each {
    ($($(#[$when:meta])* $name:ident: $make:expr;)*) => {$(
        $(#[$when])*
        mod $name {
            use super::*;

            each!(@tests $name, $make; the_address_tells, nothing_left, nothing_left_for_a_thread, freed_memory_serves_other_sizes, purged_reads_zero,
                locked_memory_reads_zero, forks_among_threads);
        }
    )*};
    (@tests $name:ident, $make:expr; $($test:ident),*) => {$(
        #[test]
        fn $test() {
            alone(concat!(stringify!($name), "::", stringify!($test)), || super::$test(&(Arc::clone(&$make) as Arc<dyn Allocator>)));
        }
    )*};
}

each! {
    #[cfg(feature = "mimalloc")] mimalloc: firsttouch::sources::Mimalloc::get();
    #[cfg(feature = "jemalloc")] jemalloc: firsttouch::sources::Jemalloc::get();
}

fn the_address_tells(source: &Arc<dyn Allocator>) {
    let malloc = firsttouch::sources::Malloc::new();
    let outside = Held::new(&*malloc, Request::bytes(1000)).unwrap();
    let block = Held::filled(&**source, 1000, 1);
    let owns = |address| source.list().unwrap().contains(NonNull::new(with_exposed_provenance_mut(address)).unwrap());
    assert_eq!([&block, &outside].map(|block| owns(block.address())), [true, false]);
    let address = block.address();
    block.give_back();
    assert!(!owns(address));
}

fn nothing_left(source: &Arc<dyn Allocator>) {
    let living = Held::filled(&**source, 1 << 20, 5);
    limits::set(libc::RLIMIT_AS, address_space() + (24 << 20));
    for size in [4 << 30, 64 << 30] {
        let error = Held::new(&**source, Request::bytes(size)).err().expect("more than is allowed");
        assert_eq!((error.asked, error.limit), (size, Limit::Upstream));
        assert_eq!(failure::last(), Some(error));
    }
    let mut small = Vec::new();
    while let Ok(mut block) = Held::new(&**source, Request::bytes(30_000)) {
        block.fill(small.len() as u64);
        small.push(block);
    }
    assert!(small.len() > 100, "{}", small.len());
    drop(small);
    living.give_back();
}

/// A thread's first request is refused where there is no memory to note that the thread uses the library.
fn nothing_left_for_a_thread(source: &Arc<dyn Allocator>) {
    let first = || {
        limits::set(libc::RLIMIT_AS, address_space());
        for size in (4..26).rev().map(|shift| 1 << shift) {
            // SAFETY: it has no preconditions.
            while !std::hint::black_box(unsafe { libc::malloc(size) }).is_null() {}
        }
        let refused = Held::new(&**source, Request::bytes(64 << 20)).is_err();
        limits::set(libc::RLIMIT_AS, usize::MAX);
        assert!(refused);
        Held::filled(&**source, 1000, 1).give_back();
    };
    std::thread::scope(|threads| threads.spawn(first).join().unwrap());
}

fn freed_memory_serves_other_sizes(source: &Arc<dyn Allocator>) {
    limits::set(libc::RLIMIT_DATA, 300 << 20);
    limits::freed_memory_serves_other_sizes(&**source);
}

fn purged_reads_zero(source: &Arc<dyn Allocator>) {
    for round in 0..20u64 {
        let blocks: Vec<_> = (0..60).map(|n| Held::filled(&**source, 700 << ((n + round) % 13), n)).collect();
        blocks.into_iter().for_each(Held::give_back);
        if round % 2 == 0 {
            source.trim();
        }
        for n in 0..60 {
            let mut block = Held::zeros(&**source, 900 << ((n * 7 + round) % 13));
            block.check_zero();
            block.fill(n);
        }
    }
}

fn locked_memory_reads_zero(source: &Arc<dyn Allocator>) {
    limits::lock_future();
    purged_reads_zero(source);
}

fn forks_among_threads(source: &Arc<dyn Allocator>) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for thread in 0..3u64 {
            let stop = &stop;
            threads.spawn(move || {
                let mut turn = thread;
                while !stop.load(Relaxed) {
                    turn += 1;
                    let blocks: Vec<_> = (0..8).map(|n| Held::filled(&**source, 900 << ((n + turn) % 13), n)).collect();
                    drop(blocks);
                    // What a thread keeps goes as it ends, in the middle of somebody's fork.
                    let short = || (0..40).for_each(|n| Held::filled(&**source, 100 << (n % 12), n).give_back());
                    std::thread::scope(|threads| drop(threads.spawn(short)));
                }
            });
        }
        let left = Held::filled(&**source, 5 << 20, 9);
        for round in 0..40 {
            let child = fork(|| {
                left.check();
                let blocks: Vec<_> = (0..30).map(|n| Held::filled(&**source, 500 << (n % 14), n)).collect();
                in_thread(|| Held::zeros(&**source, 3 << 20).check_zero());
                blocks.into_iter().for_each(Held::give_back);
                source.trim();
            });
            Held::filled(&**source, 1 << 20, round).give_back();
            child.join();
        }
        stop.store(true, Relaxed);
    });
}
