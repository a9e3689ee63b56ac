//! Law 6: many threads allocate, pass blocks on, and free them elsewhere and out of order, while another trims.

mod common;

use common::held::Held;
use common::pattern::Dice;
use common::process::settles;
use firsttouch::adaptors::{Filled, Limited, Machine, Options, Pool};
use firsttouch::os::current_processor;
use firsttouch::scratch::Buffer;
use firsttouch::sources::{Guarded, GuardedOptions, Malloc, Pages};
use firsttouch::{Allocator, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::scope;
use std::time::{Duration, Instant};

const THREADS: u64 = 6;

fn a_size(dice: &mut Dice) -> usize {
    let shift = 9 + dice.roll(13);
    (1 << shift) + dice.roll(1 << shift)
}

/// Allocates, resizes, keeps some, sends some on to the neighbour, and frees what comes from the other side.
fn work<'a>(pool: &'a dyn Allocator, seed: u64, to: &Sender<Held<'a>>, from: &Receiver<Held<'a>>, end: Instant) {
    let mut dice = Dice(seed);
    let mut kept: Vec<Held> = Vec::new();
    let mut count = seed << 32;
    while Instant::now() < end {
        count += 1;
        let size = a_size(&mut dice);
        let request = if dice.roll(3) == 0 { Request::zeroed(size) } else { Request::bytes(size) };
        let mut block = Held::new(pool, request).unwrap();
        block.fill(count);
        if dice.roll(2) == 0 {
            let _ = to.send(block);
        } else {
            kept.push(block);
        }
        if dice.roll(8) == 0 && !kept.is_empty() {
            let at = dice.roll(kept.len());
            kept[at].resize(a_size(&mut dice)).unwrap();
        }
        kept.extend(from.try_iter().take(4));
        while kept.len() > 12 {
            kept.swap_remove(dice.roll(kept.len())).give_back();
        }
    }
    kept.into_iter().for_each(Held::give_back);
}

fn storm(pool: &dyn Allocator, seconds: f64) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let done = AtomicBool::new(false);
    scope(|threads| {
        let (mut to, mut from): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
        from.rotate_right(1);
        let workers: Vec<_> = (0..THREADS)
            .map(|seed| (seed + 1, to.remove(0), from.remove(0)))
            .map(|(seed, to, from)| threads.spawn(move || work(pool, seed, &to, &from, end)))
            .collect();
        let other = threads.spawn(|| {
            while !done.load(Relaxed) {
                pool.trim();
                pool.stats();
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Relaxed);
        other.join().unwrap();
        results.into_iter().for_each(|result| result.unwrap());
    });
    pool.trim();
    settles(pool, |stats| (stats.blocks, stats.in_use, stats.active, stats.idle) == (0, 0, 0, 0));
}

#[test]
fn a_pool() {
    storm(&*Pool::new(Options::default()), 1.0);
}

#[test]
fn a_pool_whose_memory_decays_at_once() {
    storm(&*Pool::new(Options { decay: Some(Duration::ZERO), huge: false, max_idle: Some(4 << 20) }), 1.0);
}

/// Processors are on two nodes in turn.
#[test]
fn a_pool_on_two_nodes() {
    let machine = Machine { node_of: [0, 1].into(), current: || current_processor() % 2 };
    storm(&*Pool::on(Options::default(), machine), 1.0);
}

#[test]
fn pages() {
    storm(&*Pages::new(true), 1.0);
}

#[test]
fn a_pool_over_a_budget() {
    let pool = Pool::over(Limited::new(Arc::new(Malloc), 1 << 40), Options::default());
    storm(&*pool, 1.0);
    let stats = pool.stats();
    assert_eq!((stats.blocks, stats.in_use), (0, 0));
}

#[test]
fn guarded_and_filled() {
    let guarded = Guarded::new(GuardedOptions { keep: 4 << 20, ..Default::default() });
    storm(&*Filled::new(guarded.clone(), Some(1), Some(2)), 1.0);
    assert_eq!(guarded.check(), []);
}

#[test]
fn a_scratch_buffer() {
    let pool = Pool::new(Options::default());
    let buffer = Buffer::growing(pool.clone(), 64 << 10);
    storm(&*buffer, 1.0);
    assert_eq!((buffer.used(), buffer.capacity(), pool.stats().blocks), (0, 0, 0));
}

/// Pools come and go while others work: the map from addresses to owners and the background purger see both.
#[test]
fn pools_come_and_go() {
    scope(|threads| {
        for seed in 1..5 {
            threads.spawn(move || {
                let mut dice = Dice(seed);
                for _ in 0..20 {
                    let decay = Some(Duration::from_millis(100));
                    let pool = Pool::new(Options { decay, ..Options::default() });
                    let blocks: Vec<_> = (0..8).map(|n| Held::filled(&*pool, a_size(&mut dice), n)).collect();
                    blocks.into_iter().for_each(Held::give_back);
                }
            });
        }
    });
}
