//! A pool in a program that was not written for pools: what it finds out about how blocks are used.

#![allow(unsafe_code)] // Safety: a few bytes are written within a block that is never freed.

mod common;

use common::held::Held;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::os::{huge_page_size, page_size};
use firsttouch::{Allocator, Request};

/// Beyond the least size for huge pages, wherever they have at most 4 MiB.
const SIZE: usize = 6 << 20;

fn huge_bytes(pool: &Pool) -> u64 {
    pool.stats().first_touched_huge_bytes
}

#[test]
fn a_block_that_is_filled_lets_the_next_ones_have_huge_pages() {
    if huge_page_size().is_none_or(|size| size > 4 << 20) {
        return;
    }
    let pool = Pool::guest(Options::default());
    let first = Held::filled(&*pool, SIZE, 1);
    assert_eq!(huge_bytes(&pool), 0);
    let second = Held::filled(&*pool, SIZE, 2);
    assert!(huge_bytes(&pool) >= SIZE as u64);
    let before = huge_bytes(&pool);
    let larger = Held::new(&*pool, Request::bytes(2 * SIZE)).unwrap();
    assert_eq!(huge_bytes(&pool), before, "no block of that size was found filled");
    drop((first, second, larger));
}

#[test]
fn a_block_that_is_hardly_touched_does_not() {
    let pool = Pool::guest(Options::default());
    for _ in 0..20 {
        let block = pool.allocate(Request::bytes(SIZE)).unwrap();
        for at in (0..SIZE).step_by(SIZE / 4) {
            // SAFETY: within the block, which is never freed.
            unsafe { block.address.add(at).write(1) };
        }
    }
    assert_eq!(huge_bytes(&pool), 0);
}

#[test]
fn idle_memory_on_either_kind_of_page_serves_before_fresh_memory() {
    if huge_page_size().is_none_or(|size| size > 4 << 20) {
        return;
    }
    let pool = Pool::guest(Options::default());
    let fresh = || pool.taken_fresh();
    let first = Held::filled(&*pool, SIZE, 1);
    let second = Held::filled(&*pool, SIZE, 2); // on huge pages
    let before = fresh();
    first.give_back();
    let third = Held::filled(&*pool, SIZE, 3); // would be, too
    assert_eq!(fresh(), before, "base pages are there already");
    second.give_back();
    let small = Held::filled(&*pool, 300 << 10, 4);
    assert_eq!(fresh(), before, "huge pages are there already");
    let tiny = Held::filled(&*pool, 140 << 10, 5);
    assert!(fresh() > before, "a unit for huge pages is too large for it");
    drop((third, small, tiny));
}

#[test]
fn what_was_given_back_too_early_is_counted() {
    let pool = Pool::guest(Options { huge: false, ..Options::default() });
    for turn in 0..4 {
        Held::filled(&*pool, SIZE, turn).give_back();
        pool.trim();
    }
    let three = 3 * SIZE;
    assert!((three..three + 16 * page_size()).contains(&pool.taken_again()), "{}", pool.taken_again());
}

#[test]
fn blocks_that_are_filled_say_nothing_of_much_larger_ones() {
    if huge_page_size().is_none_or(|size| size > 4 << 20) {
        return;
    }
    let pool = Pool::guest(Options::default());
    let filled: Vec<_> = (0..40).map(|seed| Held::filled(&*pool, 1 << 20, seed)).collect();
    let before = huge_bytes(&pool);
    let larger = Held::new(&*pool, Request::bytes(20 << 20)).unwrap();
    assert_eq!(huge_bytes(&pool), before, "40 MiB were filled, but no block of such a size");
    let similar = Held::new(&*pool, Request::bytes(4 << 20)).unwrap();
    assert!(huge_bytes(&pool) > before);
    drop((filled, larger, similar));
}

#[test]
fn growth_takes_nothing_again() {
    let pool = Pool::guest(Options { huge: false, ..Options::default() });
    let mut block = Held::filled(&*pool, SIZE, 1);
    assert!(block.resize_in_place(3 * SIZE));
    assert_eq!(pool.taken_again(), 0);
}

#[test]
fn parts_of_huge_pages_can_be_given_back() {
    if huge_page_size().is_none_or(|size| size > 4 << 20) {
        return;
    }
    let pool = Pool::guest(Options::default());
    let mut blocks: Vec<_> = (0..20).map(|seed| Held::filled(&*pool, 900 << 10, seed)).collect();
    let mut kept = 0;
    blocks.retain(|_| {
        kept += 1;
        kept % 2 == 0
    });
    pool.trim();
    assert!(pool.idle() > 4 << 20, "every huge page is in use in part");
    assert!(pool.trim_parts() > 4 << 20);
    assert_eq!(pool.idle(), 0);
    blocks.into_iter().for_each(Held::give_back);
}
