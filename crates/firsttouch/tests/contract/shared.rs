//! Law 6: any thread may free.

use super::Make;
use super::common::held::Held;
use super::sizes::up_to;
use std::sync::mpsc::channel;
use std::thread::scope;

pub fn any_thread_may_free(make: Make) {
    let allocator = make();
    let allocator = &*allocator;
    scope(|threads| {
        let (give, take) = channel::<Held>();
        threads.spawn(move || {
            let mut kept: Vec<Held> = take.into_iter().collect();
            while kept.len() > 1 {
                kept.swap_remove(kept.len() / 2).give_back();
            }
        });
        for (seed, size) in up_to(3 << 20).cycle().take(100).enumerate() {
            give.send(Held::filled(allocator, size, seed as u64)).unwrap();
        }
    });
    Held::zeros(allocator, 3 << 20).give_back();
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
