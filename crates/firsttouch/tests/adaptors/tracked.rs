//! The counts of `tracked` are exact, whichever thread allocates.

use super::common::held::Held;
use firsttouch::adaptors::{Limited, Options, Pool, Tracked};
use firsttouch::sources::{Calloc, Malloc, Pages};
use firsttouch::{Allocator, Request, Stats};
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread::scope;

fn upstreams() -> [Arc<dyn Allocator>; 4] {
    [Pool::new(Options::default()), Arc::new(Malloc), Calloc::new(), Pages::new(true)]
}

/// Whether the counts and the list agree with the blocks that live.
fn agrees(tracked: &Tracked, blocks: &[Held]) -> Stats {
    assert!(blocks.iter().all(|block| tracked.owns(NonNull::new(block.address() as *mut u8).unwrap()) == Some(true)));
    let stats = tracked.stats();
    assert_eq!(stats.blocks, blocks.len());
    assert_eq!(stats.in_use, blocks.iter().map(|block| block.asked).sum::<usize>());
    assert!(stats.peak_in_use >= stats.in_use);
    stats
}

#[test]
fn all_that_happens_is_counted() {
    for upstream in upstreams() {
        let tracked = Tracked::new(upstream);
        let empty = agrees(&tracked, &[]);
        assert_eq!((empty.peak_in_use, empty.allocations, empty.allocated_bytes), (0, 0, 0));
        let mut blocks: Vec<_> = [1, 2, 3, 1000, 1024, 5 << 20].map(|size| Held::filled(&*tracked, size, 1)).into();
        let total = 1 + 2 + 3 + 1000 + 1024 + (5 << 20);
        let stats = agrees(&tracked, &blocks);
        assert_eq!((stats.peak_in_use, stats.allocations, stats.allocated_bytes), (total, 6, total as u64));
        blocks[3].resize(3000).unwrap();
        blocks[5].resize(1 << 20).unwrap();
        let stats = agrees(&tracked, &blocks);
        assert_eq!((stats.peak_in_use, stats.allocations), (total + 2000, 6));
        assert_eq!(stats.allocated_bytes, total as u64 + 2000, "growth counts, shrinking does not");
        blocks.drain(1..4).for_each(Held::give_back);
        blocks[2].resize_in_place(700_000);
        let stats = agrees(&tracked, &blocks);
        assert_eq!(stats.peak_in_use, total + 2000);
        blocks.clear();
        agrees(&tracked, &[]);
    }
}

#[test]
fn what_fails_counts_nothing() {
    let tracked = Tracked::new(Limited::new(Arc::new(Malloc), 1000));
    let mut blocks = vec![Held::filled(&*tracked, 600, 1)];
    let before = tracked.stats();
    assert!(Held::new(&*tracked, Request::bytes(500)).is_err());
    assert!(Held::new(&*tracked, Request::bytes(usize::MAX)).is_err());
    assert!(blocks[0].resize(1001).is_err());
    assert!(!blocks[0].resize_in_place(1001));
    assert_eq!(agrees(&tracked, &blocks), Stats { failures: 2, ..before });
    blocks[0].resize(1000).unwrap();
    assert_eq!(agrees(&tracked, &blocks).peak_in_use, 1000);
}

/// A block that the upstream served itself passes through, and changes no count.
#[test]
fn blocks_of_others_pass_uncounted() {
    let upstream: Arc<dyn Allocator> = Pool::new(Options::default());
    let tracked = Tracked::new(upstream.clone());
    let mine = Held::filled(&*tracked, 50_000, 1);
    let other = Held::filled(&*upstream, 70_000, 2).hand_over(&*tracked);
    assert_eq!(upstream.stats().blocks, 2);
    other.give_back();
    assert_eq!((upstream.stats().blocks, tracked.stats().blocks), (1, 1));
    agrees(&tracked, &[mine]);
}

#[test]
fn threads_lose_no_count() {
    let tracked = Tracked::new(Pool::new(Options::default()));
    let (threads, rounds) = (4u64, 3000u64);
    scope(|scope| {
        for seed in 0..threads {
            let tracked: &dyn Allocator = &*tracked;
            scope.spawn(move || {
                let mut kept = Vec::new();
                for round in 0..rounds {
                    kept.push(Held::new(tracked, Request::bytes(100 + (round * 37 % 5000) as usize)).unwrap());
                    if round % 5 == seed {
                        kept[0].resize(200 + round as usize).unwrap();
                    }
                    if kept.len() > 10 {
                        kept.swap_remove(round as usize % 10);
                    }
                }
            });
        }
    });
    let stats = agrees(&tracked, &[]);
    assert_eq!(stats.allocations, threads * rounds);
    assert!(stats.peak_in_use > 5000 && stats.peak_in_use < 4 * 11 * 5200, "{}", stats.peak_in_use);
}
