//! What sources count that keep a list of their blocks: exactly, whichever thread allocates.

use super::common::held::Held;
use firsttouch::sources::Calloc;
use firsttouch::{Allocator, Request};
use std::thread::scope;

#[test]
fn the_peak_stays() {
    let source = Calloc::new();
    let blocks = [100, 200, 5000].map(|size| Held::filled(&*source, size, 1));
    drop(blocks);
    let _block = Held::filled(&*source, 50, 2);
    let stats = source.stats();
    assert_eq!((stats.peak_in_use, stats.in_use), (5300, 50));
}

#[test]
fn threads_lose_no_count() {
    let source = Calloc::new();
    let (threads, rounds) = (4u64, 3000u64);
    scope(|scope| {
        for _ in 0..threads {
            let source: &dyn Allocator = &*source;
            scope.spawn(move || {
                let mut kept = Vec::new();
                for round in 0..rounds {
                    kept.push(Held::new(source, Request::bytes(100 + (round * 37 % 5000) as usize)).unwrap());
                    if kept.len() > 10 {
                        kept.swap_remove(round as usize % 10);
                    }
                }
            });
        }
    });
    let stats = source.stats();
    assert_eq!((stats.allocations, stats.blocks, stats.in_use), (threads * rounds, 0, 0));
    assert!(stats.peak_in_use > 5000 && stats.peak_in_use < 4 * 11 * 5200, "{}", stats.peak_in_use);
}
