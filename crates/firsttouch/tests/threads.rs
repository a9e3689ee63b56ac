//! Law 6: many threads allocate, pass blocks on, and free them elsewhere and out of order, while another trims.

mod common;

use common::held::Held;
use common::pattern::Dice;
use common::storm::a_size;
use firsttouch::Allocator;
use firsttouch::adaptors::{Filled, Limited, Machine, Options, Pool};
use firsttouch::os::current_processor;
use firsttouch::scratch::Buffer;
use firsttouch::sources::{Guarded, GuardedOptions, Malloc, Pages};
use std::sync::Arc;
use std::thread::scope;
use std::time::Duration;

/// Six threads, while another trims.
fn storm(allocator: &dyn Allocator) {
    common::storm::storm(allocator, 6, || {
        for _ in 0..100 {
            allocator.trim();
            allocator.stats();
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn a_pool() {
    storm(&*Pool::new(Options::default()));
}

#[test]
fn a_pool_whose_memory_decays_at_once() {
    storm(&*Pool::new(Options { decay: Some(Duration::ZERO), huge: false, max_idle: Some(4 << 20) }));
}

/// Processors are on two nodes in turn.
#[test]
fn a_pool_on_two_nodes() {
    let machine = Machine { node_of: [0, 1].into(), current: || current_processor() % 2 };
    storm(&*Pool::on(Options::default(), machine));
}

#[test]
fn pages() {
    storm(&*Pages::new(true));
}

#[test]
fn a_pool_over_a_budget() {
    let pool = Pool::over(Limited::new(Arc::new(Malloc), 1 << 40), Options::default());
    storm(&*pool);
}

#[test]
fn guarded_and_filled() {
    let guarded = Guarded::new(GuardedOptions { keep: 4 << 20, ..Default::default() });
    storm(&*Filled::new(guarded.clone(), Some(1), Some(2)));
    assert_eq!(guarded.check(), []);
}

#[test]
fn a_scratch_buffer() {
    let pool = Pool::new(Options::default());
    let buffer = Buffer::growing(pool.clone(), 64 << 10);
    storm(&*buffer);
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
