//! What sources count that keep a list of their blocks: exactly, whichever thread allocates.

use super::common::held::Held;
use firsttouch::sources::{Calloc, Guarded, GuardedOptions};
use firsttouch::{Allocator, Request, Stats};
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread::scope;

fn sources() -> [Arc<dyn Allocator>; 3] {
    [Calloc::new(), Calloc::aligned(4096).unwrap(), Guarded::new(GuardedOptions::default())]
}

/// Whether the counts and the list agree with the blocks that live.
fn agrees(source: &dyn Allocator, blocks: &[Held]) -> Stats {
    assert!(blocks.iter().all(|block| source.owns(NonNull::new(block.address() as *mut u8).unwrap()) == Some(true)));
    let stats = source.stats();
    assert_eq!(stats.blocks, blocks.len());
    assert_eq!(stats.in_use, blocks.iter().map(|block| block.asked).sum::<usize>());
    stats
}

#[test]
fn all_that_happens_is_counted() {
    for source in sources() {
        let mut blocks: Vec<_> = [1, 2, 3, 1000, 1024, 5 << 20].map(|size| Held::filled(&*source, size, 1)).into();
        let total = 1 + 2 + 3 + 1000 + 1024 + (5 << 20);
        let stats = agrees(&*source, &blocks);
        assert_eq!((stats.allocations, stats.allocated_bytes), (6, total as u64));
        blocks[3].resize(3000).unwrap();
        blocks[5].resize(1 << 20).unwrap();
        assert!(agrees(&*source, &blocks).allocated_bytes > total as u64, "growth counts");
        blocks.drain(1..4).for_each(Held::give_back);
        blocks[2].resize_in_place(700_000);
        agrees(&*source, &blocks);
        assert!(Held::new(&*source, Request::bytes(usize::MAX)).is_err());
        agrees(&*source, &blocks);
        blocks.clear();
        agrees(&*source, &[]);
    }
}

#[test]
fn the_peak_stays() {
    let source = Calloc::new();
    let blocks = [100, 200, 5000].map(|size| Held::filled(&*source, size, 1));
    drop(blocks);
    let stats = agrees(&*source, &[Held::filled(&*source, 50, 2)]);
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
    let stats = agrees(&*source, &[]);
    assert_eq!(stats.allocations, threads * rounds);
    assert!(stats.peak_in_use > 5000 && stats.peak_in_use < 4 * 11 * 5200, "{}", stats.peak_in_use);
}
