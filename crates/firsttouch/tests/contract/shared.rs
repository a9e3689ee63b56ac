//! Law 6: any thread may free.

use super::Make;
use super::common::held::Held;
use super::common::pattern::Dice;
use super::common::storm::{a_size, storm};
use firsttouch::adaptors::{Options, Pool};
use firsttouch::allocator::find;
use firsttouch::scratch::Buffer;
use firsttouch::sources::Guarded;
use std::thread::scope;
use std::time::Duration;

/// Threads allocate, pass blocks on, and free them elsewhere and out of order, while another trims.
pub fn a_storm(make: Make) {
    let allocator = make();
    storm(&*allocator, 4, || {
        for _ in 0..20 {
            allocator.trim();
            allocator.stats();
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    assert!(find::<Guarded>(&allocator).is_none_or(|guarded| guarded.check().is_empty()));
    assert!(find::<Buffer>(&allocator).is_none_or(|buffer| (buffer.used(), buffer.capacity()) == (0, 0)));
}

pub fn a_thread_that_ends_leaves_nothing_behind(make: Make) {
    let allocator = make();
    for round in 0..20 {
        let allocator = &*allocator;
        let left = scope(|threads| {
            let thread = threads.spawn(move || {
                Held::filled(allocator, 1 << 20, round).give_back();
                Held::filled(allocator, 1 << 20, round + 1)
            });
            thread.join().unwrap()
        });
        left.give_back();
    }
    let stats = allocator.stats();
    assert_eq!(stats.blocks, 0);
    assert!(stats.mapped <= 24 << 20, "{stats:?}");
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
