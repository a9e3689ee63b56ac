//! What a processor remembers of freed blocks: the last is handed out first, and none is missing where another is looked for.

mod common;

use common::held::Held;
use firsttouch::Allocator;
use firsttouch::adaptors::{Options, Pool, huge_min};
use firsttouch::os::{Pretence, pretend, pretend_on};

const MIB: usize = 1 << 20;

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

/// In the heap, where it would be joined with its neighbor, its neighbor would be the first.
#[test]
fn the_last_of_a_size_is_handed_out_first() {
    let pool = Pool::new(Options::default());
    for size in [100_000, 512 << 10, 700_000, MIB, 3 * MIB, 4 * MIB] {
        assert!(now_and_then(|| the_last_comes_first(&pool, size)), "{size} bytes");
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

/// So that a loop does not search the heap, and empty all shards, in every turn.
#[test]
fn the_last_of_a_size_is_handed_out_first_on_huge_pages_as_well() {
    if huge_min(false) > MIB {
        return;
    }
    for size in [300_000, 500_000] {
        let found = now_and_then(|| {
            let pool = Pool::new(Options::default());
            Held::filled(&*pool, 9 * MIB, 1).give_back();
            let fresh = pool.taken_fresh();
            let found = the_last_comes_first(&pool, size);
            assert_eq!(pool.taken_fresh(), fresh, "they lie on huge pages");
            found
        });
        assert!(found, "{size} bytes");
    }
}

/// What a shard has not reported yet, less than 1 MiB, counts as idle until then; with many shards that is much.
#[test]
fn many_processors_with_little_each_use_it_again() {
    const PROCESSORS: usize = 32;
    let pool = pretend(Pretence { nodes: PROCESSORS, node_of: |_| 0 }, || Pool::new(Options::default()));
    let on_each = |body: &mut dyn FnMut(u64)| {
        for processor in 0..PROCESSORS {
            pretend_on(Some(processor));
            body(processor as u64);
        }
        pretend_on(None);
    };
    let mut live = Vec::new();
    on_each(&mut |seed| live.extend((0..3).map(|_| Held::filled(&*pool, 300_000, seed))));
    for _ in 0..20 {
        on_each(&mut |seed| Held::filled(&*pool, 60_000, seed).give_back());
    }
    let stats = pool.stats();
    assert_eq!(stats.recycled, 19 * PROCESSORS as u64, "{stats:?}");
}
