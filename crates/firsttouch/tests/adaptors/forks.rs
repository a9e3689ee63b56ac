//! Law 6 for adaptors: in a forked child their locks are free and their blocks in place, whatever other threads did.

use super::common::alone::alone;
use super::common::forked::fork;
use super::common::held::Held;
use super::common::process::settles;
use super::common::wild::{dies, guard_behind, write};
use firsttouch::adaptors::{Filled, Guarded, GuardedOptions, Limited, Options, Pool, Tracked};
use firsttouch::sources::{Aligned, Malloc, Pages};
use firsttouch::{Allocator, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::scope;
use std::time::Duration;

fn stacks() -> [Arc<dyn Allocator>; 4] {
    let quick = Options { decay: Some(Duration::from_millis(100)), ..Options::default() };
    [
        Pool::over(Arc::new(Malloc), quick),
        Pool::over(Tracked::new(Pages::new(true)), Options::default()),
        Pool::over(Filled::new(Aligned::new(4096).unwrap(), Some(1), Some(2)), quick),
        Pool::over(Guarded::new(Pool::new(quick), GuardedOptions::default()), quick),
    ]
}

#[test]
fn pools_over_others_in_a_storm() {
    alone("forks::pools_over_others_in_a_storm", || {
        for stack in stacks() {
            let (stack, stop) = (&*stack, AtomicBool::new(false));
            let mine: Vec<_> = (0..6).map(|n| Held::filled(stack, 9000 << n, n)).collect();
            scope(|threads| {
                for seed in 0..2 {
                    let stop = &stop;
                    threads.spawn(move || {
                        while !stop.load(Relaxed) {
                            let blocks: Vec<_> = (0..8).map(|n| Held::filled(stack, 900 << n, seed + n)).collect();
                            blocks.into_iter().for_each(Held::give_back);
                            if seed == 0 {
                                stack.trim();
                            }
                        }
                    });
                }
                for round in 0..40 {
                    let child = fork(|| {
                        mine.iter().for_each(Held::check);
                        Held::filled(stack, 70_000, round).give_back();
                        Held::zeros(stack, 70_000).check_zero();
                        stack.trim();
                    });
                    Held::filled(stack, 70_000, round).give_back();
                    child.join();
                }
                stop.store(true, Relaxed);
            });
            mine.into_iter().for_each(Held::give_back);
            stack.trim();
            settles(stack, |stats| (stats.blocks, stats.active, stats.idle) == (0, 0, 0));
        }
    });
}

#[test]
fn guarded_blocks_in_a_storm() {
    alone("forks::guarded_blocks_in_a_storm", || {
        let filled = Filled::new(
            Guarded::new(Pool::new(Options::default()), GuardedOptions { keep: 1 << 20, ..Default::default() }),
            Some(1),
            Some(2),
        );
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

/// Threads that do little but take and give up the adaptors' locks: the child finds all of them free.
#[test]
fn adaptors_in_a_hurry() {
    alone("forks::adaptors_in_a_hurry", || {
        let guarded = Guarded::new(Arc::new(Malloc), GuardedOptions::default());
        let stacks: [Arc<dyn Allocator>; 4] = [
            Pool::over(Arc::new(Malloc), Options::default()),
            Tracked::new(Limited::new(Arc::new(Malloc), 1 << 30)),
            Filled::new(Arc::new(Malloc), None, None),
            guarded.clone(),
        ];
        for stack in stacks {
            let (stack, stop) = (&*stack, AtomicBool::new(false));
            scope(|threads| {
                let (stop, guarded) = (&stop, &*guarded);
                threads.spawn(move || {
                    while !stop.load(Relaxed) {
                        drop(Held::new(stack, Request::bytes(100)).unwrap());
                    }
                });
                // These need one lock each, so no other holds them up while the fork takes place.
                threads.spawn(move || {
                    while !stop.load(Relaxed) {
                        assert!(stack.stats().blocks < 3);
                    }
                });
                threads.spawn(move || {
                    while !stop.load(Relaxed) {
                        assert_eq!(guarded.check(), []);
                    }
                });
                for round in 0..150 {
                    fork(|| {
                        (0..20).for_each(|n| drop(Held::new(stack, Request::bytes(100 + n)).unwrap()));
                        Held::filled(guarded, 100, round).give_back();
                    })
                    .join();
                }
                stop.store(true, Relaxed);
            });
        }
    });
}
