//! Reads of uninitialized and of freed memory see the pattern.

use super::common::held::Held;
use firsttouch::adaptors::{Filled, Limited, Options, Pool};
use firsttouch::sources::{Calloc, Malloc, Pages};
use firsttouch::{Allocator, Request};
use std::sync::Arc;

const SIZES: [usize; 7] = [1, 100, 4096, 5000, 70_000, 1 << 20, (3 << 20) + 5];

fn upstreams() -> [Arc<dyn Allocator>; 6] {
    [
        Pool::new(Options::default()),
        Pages::new(true),
        Malloc::new(),
        Calloc::new(),
        Calloc::aligned(64).unwrap(),
        Limited::new(Pool::new(Options::default()), 1 << 30),
    ]
}

fn all(bytes: &[u8], byte: u8) -> bool {
    bytes.iter().all(|&other| other == byte)
}

#[test]
fn what_was_never_written_shows() {
    for upstream in upstreams() {
        let filled = Filled::new(upstream, Some(0xFF), None);
        for round in 0..3 {
            for size in SIZES {
                let mut block = Held::new(&*filled, Request::bytes(size)).unwrap();
                assert!(!block.zeroed && all(block.bytes(), 0xFF), "{size} bytes in round {round}");
                block.fill(round);
                block.give_back();
                let mut zeros = Held::zeros(&*filled, size);
                assert!(all(zeros.bytes(), 0));
            }
        }
    }
}

#[test]
fn the_tail_of_a_block_that_grows_shows_too() {
    for (upstream, on_free) in upstreams().into_iter().flat_map(|up| [(up.clone(), None), (up, Some(3))]) {
        let filled = Filled::new(upstream, Some(0xAB), on_free);
        for zeroed in [false, true] {
            for (size, target) in [(100, 130), (100, 5000), (5000, 9000), (70_000, 3 << 20), (3 << 20, (3 << 20) + 777)]
            {
                let mut block = Held::new(&*filled, Request::bytes(size).with_zeroed(zeroed)).unwrap();
                block.bytes().fill(1);
                block.resize(target).unwrap();
                assert!(all(&block.bytes()[..size], 1) && all(&block.bytes()[size..], 0xAB), "{size} to {target}");
                block.bytes().fill(2);
                block.resize(size / 2).unwrap();
                assert!(all(block.bytes(), 2));
                block.resize(target).unwrap();
                assert!(all(&block.bytes()[..size / 2], 2) && all(&block.bytes()[size / 2..], 0xAB), "up again");
            }
        }
    }
}

/// Nothing of a block's content is left as it goes back, freed, moved, or shrunk: the next who takes the memory reads zeros.
#[test]
fn what_is_freed_is_wiped() {
    let pool = Pool::new(Options { decay: None, ..Options::default() });
    let filled = Filled::new(pool.clone(), None, Some(0));
    for size in SIZES {
        let mut block = Held::filled(&*filled, size, 1);
        for next in [2 * size + (8 << 20), size / 2 + 1, size / 4 + 1] {
            block.resize(next).unwrap();
        }
        block.give_back();
        Held::filled(&*filled, size, 2).give_back();
    }
    let recycled = pool.stats().recycled_bytes;
    let taken: Vec<_> = SIZES.repeat(4).iter().map(|&size| Held::new(&*pool, Request::bytes(size)).unwrap()).collect();
    taken.iter().for_each(Held::check_zero);
    assert!(pool.stats().recycled_bytes - recycled > 9 << 20);
}

/// Where a wiped block can't be moved, it stays as it was.
#[test]
fn a_move_that_fails_changes_nothing() {
    let filled = Filled::new(Limited::new(Malloc::new(), 10_000), Some(1), Some(2));
    let mut block = Held::filled(&*filled, 8000, 5);
    assert!(block.resize(12_000).is_err() && block.resize(4000).is_err());
    block.check();
    assert_eq!(block.asked, 8000);
}
