//! Fresh memory for small blocks comes on huge pages where a pool grows densely, and nowhere else.

mod common;

use common::alone::alone;
use common::held::Held;
use common::mapped::is_advised_huge;
use common::process::resident;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::os::huge_page_size;
use firsttouch::{Allocator, Request};
use std::sync::Arc;
use std::time::Duration;

const MIB: usize = 1 << 20;
const BLOCK: usize = 100_000;

/// Runs a test where huge pages have 2 MiB, which the sizes below are for.
fn with_huge_pages(name: &str, test: impl Fn()) {
    alone(name, || {
        if huge_page_size() == Some(2 * MIB) {
            test();
        }
    });
}

/// `bytes` in small blocks, all of them written.
fn small(pool: &Arc<Pool>, bytes: usize) -> Vec<Held<'_>> {
    (0..bytes / BLOCK).map(|seed| Held::filled(&**pool, BLOCK, seed as u64)).collect()
}

/// Blocks of which only the first byte is written.
fn sparse(pool: &Pool, count: usize, bytes: usize) -> Vec<Held<'_>> {
    let touched = |_| {
        let mut block = Held::new(pool, Request::bytes(bytes)).unwrap();
        block.bytes()[0] = 1;
        block
    };
    (0..count).map(touched).collect()
}

fn huge(pool: &Pool) -> usize {
    pool.stats().first_touched_huge_bytes as usize
}

#[test]
fn many_small_blocks_lie_on_huge_pages() {
    with_huge_pages("many_small_blocks_lie_on_huge_pages", || {
        let pool = Pool::new(Options::default());
        let few = small(&pool, 2 * MIB - BLOCK);
        assert_eq!(huge(&pool), 0);
        let before = resident();
        let many = small(&pool, 60 * MIB);
        assert!(huge(&pool) > 45 * MIB, "{} bytes", huge(&pool));
        let grown = resident() - before;
        assert!(grown < 63 * MIB, "{grown} bytes for 60 MiB");
        many.iter().chain(&few).for_each(Held::check);
    });
}

#[test]
fn holes_in_huge_pages_are_given_back() {
    with_huge_pages("holes_in_huge_pages_are_given_back", || {
        let pool = Pool::new(Options::default());
        let mut blocks = small(&pool, 100 * MIB);
        let full = resident();
        let mut number = 0;
        blocks.retain(|_| {
            number += 1;
            number % 2 == 0
        });
        pool.trim();
        let freed = full - resident();
        assert!(freed > 45 * MIB, "{freed} bytes of 50 MiB");
        blocks.iter().for_each(Held::check);
        let middle = &blocks[blocks.len() / 2];
        assert!(!is_advised_huge(middle.address()), "the kernel may fill the holes");
        drop(blocks);
        pool.trim();
        let freed = full - resident();
        assert!(freed > 95 * MIB, "{freed} bytes of 100 MiB");
    });
}

#[test]
fn sparse_blocks_stay_sparse() {
    with_huge_pages("sparse_blocks_stay_sparse", || {
        let pool = Pool::new(Options::default());
        let _dense = small(&pool, 20 * MIB);
        assert!(huge(&pool) > 0);
        let before = resident();
        let mut sparse = Vec::new();
        for _ in 0..200 {
            let mut block = Held::zeros(&*pool, MIB);
            block.bytes()[0] = 1;
            sparse.push(block);
            sparse.push(Held::new(&*pool, Request::bytes(BLOCK)).unwrap());
        }
        let grown = resident() - before;
        assert!(grown < 6 * MIB, "{grown} bytes for 200 pages");
    });
}

#[test]
fn who_asks_for_none_gets_none() {
    with_huge_pages("who_asks_for_none_gets_none", || {
        let plain = Options { huge: false, ..Options::default() };
        let at_once = Options { decay: Some(Duration::ZERO), ..Options::default() };
        for pool in [Pool::new(plain), Pool::new(at_once)] {
            let blocks = small(&pool, 40 * MIB);
            assert_eq!(huge(&pool), 0);
            drop(blocks);
        }
    });
}

#[test]
fn blocks_have_to_be_filled_first() {
    with_huge_pages("blocks_have_to_be_filled_first", || {
        let pool = Pool::new(Options::default());
        let before = resident();
        let _sparse = sparse(&pool, 200, 300_000);
        let grown = resident() - before;
        assert!(grown < 4 * MIB, "{grown} bytes for 200 pages");
        assert_eq!(huge(&pool), 0);
        let full = small(&pool, 40 * MIB);
        assert!(huge(&pool) > 30 * MIB, "{} bytes", huge(&pool));
        full.iter().for_each(Held::check);
    });
}

#[test]
fn what_was_given_back_counts_as_growth_no_more() {
    with_huge_pages("what_was_given_back_counts_as_growth_no_more", || {
        let pool = Pool::new(Options::default());
        let before = resident();
        for _ in 0..10 {
            drop(small(&pool, 4 * BLOCK));
            pool.trim();
        }
        let _few = small(&pool, BLOCK);
        assert_eq!(huge(&pool), 0);
        let grown = resident().saturating_sub(before);
        assert!(grown < MIB, "{grown} bytes for a small block");
    });
}

#[test]
fn a_dense_program_may_become_sparse() {
    with_huge_pages("a_dense_program_may_become_sparse", || {
        let pool = Pool::new(Options::default());
        let _full = small(&pool, 20 * MIB);
        assert!(huge(&pool) > 10 * MIB, "{} bytes", huge(&pool));
        let before = resident();
        let _sparse = sparse(&pool, 1000, 130_000);
        let grown = resident() - before;
        assert!(grown < 40 * MIB, "{grown} bytes for 1000 pages");
    });
}

#[test]
fn what_comes_in_a_cycle_is_not_taken_for_dense() {
    with_huge_pages("what_comes_in_a_cycle_is_not_taken_for_dense", || {
        let (full, empty, page) = (16 << 10, 240 << 10, 4096);
        for offset in 0..16 {
            let pool = Pool::new(Options::default());
            let make = |size: usize, filled: usize| {
                let mut block = Held::new(&*pool, Request::bytes(size).aligned(page).unwrap()).unwrap();
                block.bytes()[..filled].fill(1);
                block
            };
            let before = resident();
            let mut blocks: Vec<_> = (0..offset).map(|_| make(full, full)).collect();
            blocks.extend((0..600).flat_map(|_| [make(full, full), make(empty, 1)]));
            let grown = resident() - before;
            assert!(grown < 24 * MIB, "{grown} bytes for 12 MiB, with an offset of {offset}");
        }
    });
}
