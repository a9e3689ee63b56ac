//! What a processor remembers of freed blocks: the last is handed out first, and none is missing where another is looked for.

mod common;

use common::alone::each_alone;
use common::held::Held;
use firsttouch::adaptors::{Machine, Options, Pool, huge_min};
use firsttouch::os::{Call, fail_after, injected};
use firsttouch::{Allocator, Request};
use std::cell::Cell;

const MIB: usize = 1 << 20;

each_alone! { blocks_that_are_not_written_are_not_looked_at_each_time }

thread_local! {
    /// The processor that runs this thread, for the pools on a [`machine`].
    static HERE: Cell<usize> = const { Cell::new(0) };
}

/// A machine whose processors are on these nodes.
fn machine<const PROCESSORS: usize>(node_of: [u8; PROCESSORS]) -> Machine {
    Machine { node_of: node_of.into(), current: || HERE.get() }
}

/// The thread may change its processor between two steps.
fn now_and_then(happens: impl Fn() -> bool) -> bool {
    (0..20).any(|_| happens())
}

/// Whether a block of a size is the one that was given back last, and not its neighbor below.
fn the_last_comes_first(pool: &Pool, size: usize) -> bool {
    let mut blocks: Vec<_> = (0..3).map(|seed| Held::filled(pool, size, seed)).collect();
    blocks.sort_by_key(Held::address);
    let _above = blocks.pop();
    let last = blocks[1].address();
    blocks.drain(..).for_each(Held::give_back);
    Held::filled(pool, size, 9).address().abs_diff(last) < 4096
}

/// In the heap, where it would be joined with its neighbor, its neighbor would be the first; and a loop would search the heap, and
/// empty all shards, in every turn. So it is where they lie on huge pages.
#[test]
fn the_last_of_a_size_is_handed_out_first() {
    for (size, before) in [(100_000, 0), (512 << 10, 0), (300_000, 9 * MIB), (500_000, 9 * MIB)] {
        if before > 0 && huge_min(false) > MIB {
            continue;
        }
        let pool = Pool::new(Options::default());
        let found = now_and_then(|| {
            Held::filled(&*pool, before.max(1), 1).give_back();
            let fresh = pool.taken_fresh();
            let found = the_last_comes_first(&pool, size);
            assert!(before == 0 || pool.taken_fresh() == fresh, "they lie on huge pages");
            found
        });
        assert!(found, "{size} bytes");
    }
}

/// A larger block would be split if the heap did not know of the one that fits better.
#[test]
fn another_size_finds_large_blocks_in_the_heap() {
    let found = now_and_then(|| {
        let pool = Pool::new(Options { huge: false, ..Options::default() });
        let [larger, _one, better, _other] = [8 * MIB, MIB, 3 * MIB, MIB].map(|size| Held::filled(&*pool, size, 1));
        let at = better.address();
        larger.give_back();
        better.give_back();
        (at..at + MIB).contains(&Held::filled(&*pool, 2 * MIB, 2).address())
    });
    assert!(found);
}

/// To ask the kernel costs five times as much as the request.
fn blocks_that_are_not_written_are_not_looked_at_each_time() {
    let pool = Pool::new(Options::default());
    fail_after(&[Call::NodesOfPages], 5, 1);
    (0..50).for_each(|_| drop(Held::new(&*pool, Request::bytes(700_000)).unwrap()));
    let left = (0..9).position(|_| injected(Call::NodesOfPages)); // of those that were to pass
    assert!(left.is_some_and(|left| left >= 4), "{left:?}");
}

/// What a shard has not reported yet, less than 1 MiB, counts as idle until then; with many shards that is much.
#[test]
fn many_processors_with_little_each_use_it_again() {
    const PROCESSORS: usize = 32;
    let pool =
        Pool::on(Options::default(), machine(std::array::from_fn::<u8, PROCESSORS, _>(|processor| processor as u8)));
    let on_each = |body: &mut dyn FnMut(u64)| {
        for processor in 0..PROCESSORS {
            HERE.set(processor);
            body(processor as u64);
        }
    };
    let mut live = Vec::new();
    on_each(&mut |seed| live.extend((0..3).map(|_| Held::filled(&*pool, 300_000, seed))));
    for _ in 0..20 {
        on_each(&mut |seed| Held::filled(&*pool, 60_000, seed).give_back());
    }
    let stats = pool.stats();
    assert_eq!(stats.recycled, 19 * PROCESSORS as u64, "{stats:?}");
}

/// Processors 0 and 2 are on one node, 1 on another.
#[test]
fn what_is_freed_on_another_node_returns_to_its_own() {
    for size in [60_000, 900_000, 3 * MIB, 9 * MIB] {
        let pool = Pool::on(Options { decay: None, huge: false, ..Options::default() }, machine([0, 1, 0]));
        let block_on = |processor: usize| {
            HERE.set(processor);
            Held::filled(&*pool, size, 7)
        };
        let (block, _other) = (block_on(0), block_on(1));
        let at = block.address();
        HERE.set(1);
        block.give_back();
        let is_the_block = |held: &Held| held.address().abs_diff(at) < size;
        let there = block_on(1);
        assert!(!is_the_block(&there), "{size} bytes on another node");
        assert!(is_the_block(&block_on(0)), "{size} bytes on their own");
        assert!(is_the_block(&block_on(2)), "{size} bytes, on another processor of it");
    }
}
