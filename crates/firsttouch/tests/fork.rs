//! Law 6: fork is safe, even while other threads allocate and purge; the background purger is joined before it.

#![cfg(target_os = "linux")]
mod common;

use common::alone::each_alone;
use common::forked::fork;
use common::held::Held;
use common::limits::set;
use common::process::{address_space, resident, threads_called, within};
use common::storm::storm;
use firsttouch::adaptors::{Budget, Filled, Limited, Options, Pool};
use firsttouch::heap::purger;
use firsttouch::os::huge_page_size;
use firsttouch::scratch::Buffer;
use firsttouch::shared::Shared;
use firsttouch::sources::{Calloc, Guarded, GuardedOptions, Malloc, Pages};
use firsttouch::{Allocator, Request};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread::scope;
use std::time::Duration;

each_alone! {
    pools_in_a_storm sources_and_compositions_in_a_storm while_pools_come_and_go while_shared_memory_is_dropped
    while_limits_are_read while_mimalloc_is_first_asked_for the_purger_is_gone_and_comes_back idle_memory_is_cold_after_a_fork
    what_is_freed_after_a_fork_goes_back forks_between_which_only_an_outer_block_is_freed many_threads_fork_at_once
}

const PURGER: &str = "firsttouch";
/// What may stay beside a live block: huge pages are given back whole.
fn huge_page() -> usize {
    huge_page_size().unwrap_or(2 << 20)
}

fn quick() -> Arc<Pool> {
    Pool::new(Options { decay: Some(Duration::from_millis(200)), ..Options::default() })
}

/// What a program does right after a fork.
fn use_it(allocator: &dyn Allocator, seed: u64) {
    let mut blocks: Vec<_> = (0..6).map(|n| Held::filled(allocator, 30_000 << n, seed + n)).collect();
    blocks.swap_remove(2).give_back();
    blocks[1].resize(500_000).unwrap();
    Held::zeros(allocator, 400_000).check_zero();
    blocks.into_iter().for_each(Held::give_back);
}

fn forks_in_a_storm(allocator: &dyn Allocator, forks: u64) {
    storm(allocator, 3, || {
        let mine: Vec<_> = (0..5).map(|n| Held::filled(allocator, 20_000 << n, n)).collect();
        for round in 0..forks {
            let child = fork(|| {
                mine.iter().for_each(Held::check);
                use_it(allocator, round);
                if round.is_multiple_of(10) {
                    fork(|| use_it(allocator, round)).join();
                    use_it(allocator, round);
                }
            });
            use_it(allocator, round);
            mine.iter().for_each(Held::check);
            if round % 3 == 0 {
                allocator.trim();
            }
            child.join();
        }
    });
}

/// One of them purges all the time.
fn pools_in_a_storm() {
    let purges =
        Pool::new(Options { decay: Some(Duration::ZERO), huge: false, max_idle: Some(0), ..Options::default() });
    [quick(), purges].iter().for_each(|pool| forks_in_a_storm(&**pool, 150));
}

fn sources_and_compositions_in_a_storm() {
    let guarded = Guarded::new(GuardedOptions { keep: 1 << 20, ..Default::default() });
    let options = Options { decay: Some(Duration::from_millis(100)), ..Options::default() };
    let allocators: [Arc<dyn Allocator>; 7] = [
        Pages::new(true),
        Calloc::aligned(64).unwrap(),
        Pool::over(Malloc::new(), options),
        Pool::over(Limited::new(Pages::new(true), 1 << 40), Options::default()),
        Pool::over(Filled::new(Calloc::aligned(4096).unwrap(), Some(1), Some(2)), options),
        Pool::over(Filled::new(guarded, Some(1), Some(2)), options),
        Buffer::growing(Pool::new(options), 64 << 10),
    ];
    allocators.iter().for_each(|each| forks_in_a_storm(&**each, 25));
}

/// Forks while two threads do a thing again and again, and does it in each child.
fn forks_beside(forks: u64, body: impl Fn(u64) + Sync) {
    let stop = AtomicBool::new(false);
    scope(|threads| {
        let again = || {
            while !stop.load(Relaxed) {
                body(1);
            }
        };
        let _ = [threads.spawn(again), threads.spawn(again)];
        let result = catch_unwind(AssertUnwindSafe(|| (0..forks).for_each(|round| fork(|| body(round)).join())));
        stop.store(true, Relaxed);
        result.unwrap();
    });
}

/// Pools that come and go never leave a lock behind in the child.
fn while_pools_come_and_go() {
    forks_beside(100, |seed| use_it(&*quick(), seed));
}

/// Also of who made no handle.
fn while_shared_memory_is_dropped() {
    forks_beside(300, |_| drop(Shared::new(1).expect("memory")));
}

/// A child reads its own, whatever another thread was about to read.
fn while_limits_are_read() {
    let (parent, limited) = (std::process::id(), Limited::new(Malloc::new(), Budget::auto(1 << 40)));
    forks_beside(50, |_| {
        let is_child = std::process::id() != parent;
        if is_child {
            set(libc::RLIMIT_AS, address_space() + (64 << 20));
        }
        assert!(Held::new(&*limited, Request::bytes(1 << 41)).is_err());
        assert!(!is_child || limited.budget() < 64 << 20, "{}", limited.budget());
    });
}

/// Python counts threads right after a fork and warns.
#[cfg_attr(not(feature = "mimalloc"), allow(unused))]
fn while_mimalloc_is_first_asked_for() {
    for _ in 0..300 {
        let child = fork(|| {
            let both = Barrier::new(2);
            scope(|scope| {
                #[cfg(feature = "mimalloc")]
                scope.spawn(|| {
                    both.wait();
                    firsttouch::sources::Mimalloc::get()
                });
                both.wait();
                fork(|| ()).join();
            });
        });
        child.join();
    }
}

fn the_purger_is_gone_and_comes_back() {
    let pool = quick();
    let block = Held::filled(&*pool, 3 << 20, 1);
    for round in 0..20 {
        within("the background purger runs", || threads_called(PURGER) == 1);
        let child = fork(|| {
            assert_eq!(threads_called(PURGER), 0);
            // By itself with the next memory that is taken, or where it is asked for.
            if round % 2 == 0 {
                purger::resume()
            } else {
                drop(Held::filled(&*pool, 70 << 20, 2))
            }
            within("the child's background purger runs", || threads_called(PURGER) == 1);
            Held::filled(&*pool, 5 << 20, 3).give_back();
            within("idle memory is given back in the child", || pool.stats().idle < huge_page());
        });
        assert_eq!(threads_called(PURGER), 0);
        if round % 2 == 0 {
            drop(Held::filled(&*pool, 70 << 20, 4))
        } else {
            purger::resume()
        }
        block.check();
        child.join();
    }
}

/// Idle memory would be copied when it is written again, so it is given back before.
fn idle_memory_is_cold_after_a_fork() {
    let options = Options { decay: None, ..Options::default() };
    let pools: [Arc<dyn Allocator>; 2] = [Pool::new(options), Pool::over(Malloc::new(), options)];
    for pool in pools {
        let living = Held::filled(&*pool, 5 << 20, 1);
        Held::filled(&*pool, 200 << 20, 2).give_back();
        assert!(pool.stats().idle >= 200 << 20);
        let before = resident();
        let child = fork(|| assert!(pool.stats().idle < huge_page()));
        assert!(pool.stats().idle < huge_page());
        assert!(resident() + (180 << 20) < before);
        child.join();
        living.give_back();
    }
}

/// On both sides, though neither takes memory again.
fn what_is_freed_after_a_fork_goes_back() {
    let quickly = Options { decay: Some(Duration::from_millis(200)), ..Options::default() };
    for pool in [quick() as Arc<dyn Allocator>, Pool::over(Malloc::new(), quickly)] {
        let [first, second] = [1, 2].map(|seed| Held::filled(&*pool, 5 << 20, seed));
        let child = fork(|| {
            drop(first);
            within("it goes back in the child", || pool.stats().idle < huge_page());
            assert_eq!(threads_called(PURGER), 1, "for the other block");
        });
        drop(second);
        within("it goes back in the parent", || pool.stats().idle < huge_page());
        child.join();
    }
}

/// Before the second one, what stands on the pool frees into it, which is to start no purger then, and to stay cold.
fn forks_between_which_only_an_outer_block_is_freed() {
    let pools @ [first, second, third] = &[quick(), quick(), quick()];
    let outers: [Arc<dyn Allocator>; 3] = [
        Buffer::growing(first.clone(), 8 << 20),
        Pool::over(second.clone(), Options::default()),
        Pool::over(Limited::new(third.clone(), 1 << 40), Options::default()),
    ];
    for (pool, outer) in pools.iter().zip(&outers) {
        let block = Held::filled(&**outer, 500_000, 1);
        fork(|| ()).join();
        drop(block);
        fork(|| assert!(pool.stats().idle < huge_page())).join();
        fork(|| use_it(&**outer, 2)).join();
    }
}

/// Threads that fork at the same moment: each child has a background purger that lives.
fn many_threads_fork_at_once() {
    let pool = Pool::new(Options { decay: Some(Duration::from_millis(100)), ..Options::default() });
    let living = Held::filled(&*pool, 1 << 20, 9);
    let together = Barrier::new(6);
    scope(|threads| {
        for seed in 0..6 {
            let (pool, together) = (&pool, &together);
            threads.spawn(move || {
                for _ in 0..30 {
                    Held::filled(&**pool, 3 << 20, seed).give_back();
                    purger::resume();
                    together.wait();
                    let child = fork(|| {
                        let _block = Held::new(&**pool, Request::bytes(99 << 20)).unwrap();
                        let runs = || threads_called(PURGER) == 1;
                        within("the background purger runs", runs);
                        std::thread::sleep(Duration::from_millis(5));
                        assert!(runs(), "and goes on");
                    });
                    child.join();
                }
            });
        }
    });
    living.give_back();
}
