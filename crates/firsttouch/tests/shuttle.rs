//! A model of purge against allocate: two or three threads on one pool in thousands of schedules, any of which may
//! switch threads wherever a lock is taken or given up.
//!
//!     RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle cargo test -p firsttouch --test shuttle

#![cfg(shuttle)]

mod common;

use common::held::Held;
use firsttouch::adaptors::{Filled, Limited, Machine, Options, Pool};
use firsttouch::fork;
use firsttouch::heap::purger;
use firsttouch::os::{Call, fail_after};
use firsttouch::sources::{Guarded, GuardedOptions, Pages};
use firsttouch::{Allocator, Request};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::Mutex;
use shuttle::thread::scope;
use shuttle::{Config, Runner};
use std::sync::Arc;
use std::time::Duration;

const PAGE: usize = 4096;
/// Around the sizes where memory is discarded or unmapped, kept or joined, and has small or huge pages.
const SIZES: [usize; 6] = [3 * PAGE, 70_000, 200_000, 1_100_000, 2_200_000, 600_000];

/// Says in every page, at its start and at its end, whose it is.
fn mark(block: &mut Held, seed: u64) {
    let bytes = block.bytes();
    for page in bytes.chunks_mut(PAGE) {
        page[..8].copy_from_slice(&seed.to_le_bytes());
        let end = page.len();
        page[end - 8..].copy_from_slice(&seed.to_le_bytes());
    }
}

fn check(block: &mut Held, seed: u64) {
    for page in block.bytes().chunks(PAGE) {
        assert_eq!((&page[..8], &page[page.len() - 8..]), (&seed.to_le_bytes()[..], &seed.to_le_bytes()[..]));
    }
}

type Shelf<'a> = Mutex<Vec<(Held<'a>, u64)>>;

/// Allocates, frees, hands over, resizes, trims, ticks and forks, by chance.
fn work<'a>(pool: &'a dyn Allocator, shelf: &Shelf<'a>, number: u64) {
    let mut kept: Vec<(Held, u64)> = Vec::new();
    for step in 0..7 {
        let seed = number << 32 | (step + 1);
        match thread_rng().gen_range(0..12) {
            0..=4 => {
                let size = SIZES[thread_rng().gen_range(0..SIZES.len())];
                let zeroed = thread_rng().gen_range(0..2) == 0;
                let mut block = Held::new(pool, Request::bytes(size).with_zeroed(zeroed)).unwrap();
                mark(&mut block, seed);
                kept.push((block, seed));
            }
            5 => kept.extend(shelf.lock().unwrap().pop()),
            6 => shelf.lock().unwrap().extend(kept.pop()),
            7 => {
                if let Some((block, seed)) = kept.last_mut() {
                    check(block, *seed);
                    block.resize(SIZES[thread_rng().gen_range(0..SIZES.len())]).unwrap();
                    mark(block, *seed);
                }
            }
            8 => {
                pool.trim();
            }
            9 => purger::tick(),
            10 => fork::run_handlers(),
            _ => {
                let stats = pool.stats();
                assert!(stats.in_use <= 64 << 20, "{stats:?}");
            }
        }
        if thread_rng().gen_range(0..3) == 0 && !kept.is_empty() {
            let at = thread_rng().gen_range(0..kept.len());
            let (mut block, seed) = kept.swap_remove(at);
            check(&mut block, seed);
        }
    }
    for (mut block, seed) in kept {
        check(&mut block, seed);
    }
}

/// `threads` of them on one allocator; in the end nothing is lost.
fn play(allocator: Arc<dyn Allocator>, threads: u64) {
    {
        let allocator = &*allocator;
        let shelf: Shelf = Mutex::new(Vec::new());
        scope(|spawner| {
            for number in 0..threads {
                let shelf = &shelf;
                spawner.spawn(move || work(allocator, shelf, number));
            }
        });
        for (mut block, seed) in shelf.into_inner().unwrap() {
            check(&mut block, seed);
        }
    }
    fail_after(&[], 0, 0);
    allocator.trim();
    let stats = allocator.stats();
    assert_eq!((stats.in_use, stats.active, stats.idle, stats.blocks), (0, 0, 0, 0), "{stats:?}");
}

fn options(huge: bool) -> Options {
    Options { decay: Some(Duration::ZERO), max_idle: Some(1 << 20), huge, ..Options::default() }
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config
}

/// The background purger's list is the process's: one model at a time.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn schedules(count: usize, body: impl Fn() + Send + Sync + 'static) {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Runner::new(RandomScheduler::new(count), config()).run(body);
}

fn unlikely_schedules(count: usize, body: impl Fn() + Send + Sync + 'static) {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Runner::new(PctScheduler::new(3, count), config()).run(body);
}

#[test]
fn two_threads_on_a_pool() {
    schedules(800, || play(Pool::new(options(true)), 2));
}

#[test]
fn three_threads_on_a_pool() {
    schedules(700, || play(Pool::new(options(false)), 3));
}

#[test]
fn three_threads_in_unlikely_orders() {
    unlikely_schedules(1000, || play(Pool::new(options(true)), 3));
}

/// A thread is on either node at every step.
#[test]
fn three_threads_on_two_nodes() {
    let machine = || Machine { node_of: [0, 1].into(), current: || thread_rng().gen_range(0..2) };
    schedules(600, move || play(Pool::on(options(true), machine()), 3));
}

#[test]
fn two_threads_on_pages() {
    schedules(300, || play(Pages::new(true), 2));
}

#[test]
fn two_threads_on_a_pool_over_a_budget() {
    schedules(400, || {
        let limited = Limited::new(Pages::new(false), 1 << 40);
        play(Pool::over(limited.clone(), options(true)), 2);
        assert_eq!(limited.used(), 0);
    });
}

#[test]
fn two_threads_on_guarded_blocks() {
    schedules(200, || {
        let keep = GuardedOptions { keep: 1 << 20, ..Default::default() };
        let guarded = Guarded::new(keep);
        play(Filled::new(guarded.clone(), Some(1), Some(2)), 2);
        assert_eq!(guarded.check(), []);
    });
}

/// One fills the pool and gives back, the other trims at the worst moment, and what is zeroed is zero.
#[test]
fn zero_against_trim() {
    schedules(1000, || {
        let pool = Pool::new(options(false));
        let pool = &*pool;
        scope(|spawner| {
            spawner.spawn(|| {
                for seed in 1..4 {
                    let mut dirt = Held::new(pool, Request::bytes(70_000)).unwrap();
                    mark(&mut dirt, seed);
                    drop(dirt);
                    Held::zeros(pool, 100_000).check_zero();
                }
            });
            spawner.spawn(|| (0..3).for_each(|_| assert!(pool.trim() <= 9 << 20)));
            spawner.spawn(|| (0..3).for_each(|_| purger::tick()));
        });
    });
}

/// The same while the system refuses to take memory back now and then.
#[test]
fn purges_that_fail() {
    schedules(500, || {
        let pass = thread_rng().gen_range(0..6);
        fail_after(&[Call::Discard, Call::Unmap], pass, 3);
        play(Pool::new(options(false)), 2);
    });
}
