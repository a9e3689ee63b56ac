//! Which pages a pool's blocks get: huge ones where a program fills what it takes, and nowhere else.

#![cfg(target_os = "linux")]
mod common;

use common::alone::each_alone;
use common::forked::fork;
use common::held::Held;
use common::mapped::is_advised_huge;
use common::process::resident;
use firsttouch::adaptors::{Options, Origin, Pool};
use firsttouch::os::{huge_page_size, nodes_of, sizes_of_pages};
use firsttouch::why::why;
use firsttouch::{Allocator, Request};
use std::sync::Arc;
use std::time::Duration;

const MIB: usize = 1 << 20;
const BLOCK: usize = 100_000;
/// What may lie on huge pages before anything is known of it.
const CREDIT: usize = 32 * MIB;

each_alone! {
    crate::can_tell();
    blocks_that_are_filled_and_kept_lie_on_huge_pages blocks_that_are_hardly_used_stay_sparse
    large_arrays_have_huge_pages_inside arrays_that_are_filled_in_part_have_base_pages_at_their_ends
    huge_pages_move_whole filled_temporaries_say_nothing_of_kept_blocks
    a_filled_program_may_become_sparse a_program_may_fill_and_be_sparse_in_turns a_sparse_program_may_become_filled
    what_comes_in_a_cycle_is_not_taken_for_filled zeroed_blocks_stay_sparse a_table_that_is_scanned_gets_no_huge_pages
    what_an_earlier_block_filled_says_nothing a_block_that_was_used_in_part_serves_a_sparse_one
    a_large_block_on_a_small_idle_one_is_fresh a_block_that_comes_back_filled_is_exchanged_for_huge_pages
    idle_huge_pages_serve_smaller_blocks_before_fresh_memory_does holes_in_huge_pages_are_given_back
    split_huge_pages_get_no_advice_until_a_block_has_them_whole parts_of_huge_pages_can_be_given_back
    who_asks_for_none_gets_none
}

/// Whether huge pages have 2 MiB, which the sizes below are for, and the kernel tells which pages were written.
fn can_tell() -> bool {
    let here = 1;
    huge_page_size() == Some(2 * MIB) && nodes_of(&[&raw const here as usize], &mut [0]).is_ok()
}

fn arrays() -> Arc<Pool> {
    Pool::new(Options::default())
}

fn any_blocks() -> Arc<Pool> {
    Pool::new(Options { arrays: false, ..Options::default() })
}

/// `bytes` in blocks of `size`, all of them written.
fn filled(pool: &Pool, size: usize, bytes: usize) -> Vec<Held<'_>> {
    (0..bytes / size).map(|seed| Held::filled(pool, size, seed as u64)).collect()
}

/// A block of which only the first bytes are written.
fn begun(pool: &Pool, size: usize, bytes: usize) -> Held<'_> {
    let mut block = Held::new(pool, Request::bytes(size)).unwrap();
    block.bytes()[..bytes].fill(1);
    block
}

fn begun_all(pool: &Pool, count: usize, size: usize) -> Vec<Held<'_>> {
    (0..count).map(|_| begun(pool, size, 1)).collect()
}

/// Zeros of which every second MiB is written; `Held` reads them all.
fn scanned(pool: &dyn Allocator, size: usize) -> Held<'_> {
    let mut block = Held::zeros(pool, size);
    block.bytes().iter_mut().step_by(2 * MIB).for_each(|byte| *byte = 1);
    block
}

fn drop_every_second(blocks: &mut Vec<Held>) {
    let mut number = 0;
    blocks.retain(|_| (number += 1, number % 2 == 0).1);
}

fn huge(pool: &Pool) -> usize {
    pool.stats().first_touched_huge_bytes as usize
}

fn blocks_that_are_filled_and_kept_lie_on_huge_pages() {
    for size in [BLOCK, 300_000, MIB, 3 * MIB] {
        for pool in [arrays(), any_blocks()] {
            let few = filled(&pool, size, 2 * MIB - size.min(MIB));
            assert_eq!(huge(&pool), 0, "nothing is known yet");
            let before = resident();
            let many = filled(&pool, size, 120 * MIB);
            assert!(huge(&pool) > 80 * MIB, "{} bytes of 120 MiB in blocks of {size}", huge(&pool));
            let grown = resident() - before;
            assert!(grown < 132 * MIB, "{grown} bytes for 120 MiB");
            many.iter().chain(&few).for_each(Held::check);
        }
    }
}

fn blocks_that_are_hardly_used_stay_sparse() {
    for size in [130_000, 300_000, MIB, 2_000_000, 3 * MIB] {
        for pool in [arrays(), any_blocks()] {
            let before = resident();
            let _blocks = begun_all(&pool, 400, size);
            let grown = resident() - before;
            assert!(grown < 4 * MIB, "{grown} bytes for 400 pages, in blocks of {size}");
            assert_eq!(huge(&pool), 0);
        }
    }
}

/// As NumPy's own, an array of 4 MiB and more has huge pages inside, and base pages at its ends.
fn large_arrays_have_huge_pages_inside() {
    for size in [4 * MIB, 6 * MIB + BLOCK, 8 * MIB, 33 * MIB] {
        let pool = arrays();
        let before = resident();
        let mut blocks = begun_all(&pool, 40, size);
        blocks.iter_mut().for_each(|block| block.bytes()[..BLOCK].fill(1));
        blocks.iter_mut().for_each(|block| block.bytes()[size - BLOCK..].fill(1));
        let grown = resident() - before;
        assert!(grown < 40 * (2 * BLOCK + 16384), "{grown} bytes for the ends of 40 arrays of {size}");
        blocks.iter_mut().for_each(|block| block.bytes()[size / 2..size / 2 + BLOCK].fill(1));
        let grown = resident() - before;
        assert!(grown < 40 * (2 * MIB + 3 * BLOCK), "{grown} bytes with their middles");
        assert!(is_advised_huge(blocks[20].address() + size / 2));
    }
    let others = any_blocks();
    assert!(!is_advised_huge(begun(&others, 8 * MIB, 1).address() + 4 * MIB));
}

/// As buffers are that have room for more.
fn arrays_that_are_filled_in_part_have_base_pages_at_their_ends() {
    for size in [4 * MIB, 6 * MIB, 16 * MIB] {
        let pool = arrays();
        let before = resident();
        let _blocks: Vec<_> = (0..50).map(|_| begun(&pool, size, 1_000_000)).collect();
        let grown = resident() - before;
        assert!(grown < 60 * MIB, "{grown} bytes for 50 MiB, in blocks of {size}");
    }
}

/// From 5.7 on. Elsewhere in a huge page, all of them would be split.
fn huge_pages_move_whole() {
    let pool = arrays();
    let mut block = Held::filled(&*pool, 32 * MIB, 1);
    let _behind = begun(&pool, 32 * MIB, 1);
    let left = block.address();
    block.resize(41 * MIB).unwrap();
    let range = block.address()..block.address() + block.asked;
    assert_ne!(range.start, left);
    assert!(sizes_of_pages(&range).unwrap()[0] >= 36 * MIB, "{:?}", sizes_of_pages(&range));
}

/// Evidence from the temporaries alone would let every second block have huge pages.
fn filled_temporaries_say_nothing_of_kept_blocks() {
    for size in [200_000, MIB, 2 * MIB] {
        for pool in [arrays(), any_blocks()] {
            let before = resident();
            let keep = |seed| {
                let temporary = Held::filled(&*pool, size, seed);
                let kept = begun(&pool, size, 4096);
                temporary.give_back();
                kept
            };
            let _kept: Vec<_> = (0..300).map(keep).collect();
            let grown = resident() - before;
            assert!(grown < size + 8 * MIB, "{grown} bytes for 300 pages, in blocks of {size}");
        }
    }
}

fn a_filled_program_may_become_sparse() {
    let pool = arrays();
    let _full: Vec<_> = (0..40).map(|_| (fork(|| ()).join(), filled(&pool, BLOCK, MIB))).collect();
    assert!(huge(&pool) > 10 * MIB, "{} bytes", huge(&pool));
    let before = resident();
    let _sparse = begun_all(&pool, 1000, 130_000);
    let grown = resident() - before;
    assert!(grown < CREDIT + 8 * MIB, "{grown} bytes for 1000 pages");
}

/// A look that finds sparse blocks after filled ones takes as much evidence as was given away.
fn a_program_may_fill_and_be_sparse_in_turns() {
    for count in (255..=285).step_by(10) {
        let pool = arrays();
        let before = resident();
        let turn = || (filled(&pool, BLOCK, 3 * MIB), begun_all(&pool, count, 130_000));
        let turns: Vec<_> = (0..8).map(|_| turn()).collect();
        let grown = resident() - before;
        assert!(grown < 150 * MIB, "{grown} bytes for 24 MiB and {} pages", 8 * count);
        drop(turns);
    }
}

fn a_sparse_program_may_become_filled() {
    let pool = arrays();
    let _sparse = begun_all(&pool, 200, 300_000);
    assert_eq!(huge(&pool), 0);
    let full = filled(&pool, BLOCK, 200 * MIB);
    assert!(huge(&pool) > 50 * MIB, "{} bytes", huge(&pool));
    full.iter().for_each(Held::check);
}

fn what_comes_in_a_cycle_is_not_taken_for_filled() {
    let (full, empty) = (16 << 10, 240 << 10);
    for offset in 0..16 {
        let pool = arrays();
        let before = resident();
        let mut blocks: Vec<_> = (0..offset).map(|_| begun(&pool, full, full)).collect();
        blocks.extend((0..600).flat_map(|_| [begun(&pool, full, full), begun(&pool, empty, 1)]));
        let grown = resident() - before;
        assert!(grown < 24 * MIB, "{grown} bytes for 12 MiB, with an offset of {offset}");
    }
}

/// Blocks that are mostly recycled, with a little fresh memory behind what an earlier block wrote.
fn what_an_earlier_block_filled_says_nothing() {
    let pool = Pool::new(Options { decay: None, ..Options::default() });
    let three = |seed| (Held::filled(&*pool, 256 << 10, seed), begun(&pool, 128 << 10, 1), begun(&pool, 16 << 10, 1));
    let (full, behind, _between): (Vec<_>, Vec<_>, Vec<_>) = (0..100).map(three).collect();
    drop(behind);
    pool.trim();
    drop(full);
    let _sparse = (begun_all(&pool, 100, 288 << 10), begun_all(&pool, 20, MIB));
    assert_eq!(huge(&pool), 0);
}

/// Small zeroed blocks may be sparse, and should not lie where a neighbour makes their pages real.
fn zeroed_blocks_stay_sparse() {
    let pool = arrays();
    let _dense = filled(&pool, BLOCK, 20 * MIB);
    assert!(huge(&pool) > 0);
    let before = resident();
    let _sparse: Vec<_> = (0..200).map(|_| scanned(&*pool, MIB)).collect();
    let grown = resident() - before;
    assert!(grown < 6 * MIB, "{grown} bytes for 200 pages");
}

fn a_table_that_is_scanned_gets_no_huge_pages() {
    let pool = any_blocks();
    for size in [8 * MIB, 8 * MIB, 80 * MIB, 80 * MIB, 80 * MIB] {
        let before = resident();
        let table = scanned(&*pool, size);
        let grown = resident().saturating_sub(before);
        assert!(grown < 4 * MIB, "{grown} bytes for a sparse table of {size}");
        table.give_back();
    }
    assert_eq!(huge(&pool), 0);
}

fn a_block_that_was_used_in_part_serves_a_sparse_one() {
    let pool = any_blocks();
    for part in [0, 60 * MIB] {
        for larger in [0, 20 * MIB] {
            pool.trim();
            Held::new(&*pool, Request::bytes(200 * MIB)).unwrap().give_back(); // all of the address space is there
            pool.trim();
            let before = resident();
            begun(&pool, 100 * MIB, part).give_back();
            let second = scanned(&*pool, 100 * MIB + larger);
            let grown = resident().saturating_sub(before);
            assert!(grown < 16 * MIB, "{grown} bytes after {part}, {larger} more");
            second.give_back();
        }
    }
}

fn a_large_block_on_a_small_idle_one_is_fresh() {
    let pool = any_blocks();
    let twice = |size| (0..2).for_each(|seed| Held::filled(&*pool, size, seed).give_back()); // then it has huge pages
    twice(64 * MIB);
    pool.trim();
    twice(4 * MIB);
    let before = huge(&pool);
    let large = begun(&pool, 64 * MIB, 1);
    assert_eq!((why(large.address()).unwrap().origin, huge(&pool)), (Origin::Unknown, before));
    drop(large);
    twice(4 * MIB);
    let larger = begun(&pool, 7 * MIB, 1);
    assert_eq!(why(larger.address()).unwrap().origin, Origin::Recycled);
}

fn a_block_that_comes_back_filled_is_exchanged_for_huge_pages() {
    for size in [MIB, 6 * MIB, 64 * MIB] {
        let pool = any_blocks();
        let turn = |seed| {
            let block = Held::filled(&*pool, size, seed);
            let is_huge = is_advised_huge(block.address() + size / 2);
            block.give_back();
            is_huge
        };
        assert_eq!([turn(1), turn(2), turn(3)], [false, true, true], "blocks of {size}");
        assert!(pool.idle() < 2 * size, "{} bytes", pool.idle());
        let fresh = pool.taken_fresh();
        assert!(turn(4) && fresh == pool.taken_fresh());
        let sparse = any_blocks();
        begun(&sparse, size, 1).give_back();
        begun(&sparse, size, 1).give_back();
        assert_eq!(huge(&sparse), 0, "it was not filled");
    }
}

fn idle_huge_pages_serve_smaller_blocks_before_fresh_memory_does() {
    let pool = any_blocks();
    Held::filled(&*pool, 6 * MIB, 1).give_back();
    Held::filled(&*pool, 6 * MIB, 1).give_back();
    let before = pool.taken_fresh();
    let several: Vec<_> = (0..10).map(|seed| Held::filled(&*pool, 300 << 10, seed)).collect();
    assert_eq!(pool.taken_fresh(), before, "huge pages are there already");
    let tiny = Held::filled(&*pool, 140 << 10, 5);
    assert!(pool.taken_fresh() > before, "a unit for huge pages is too large for it");
    drop((several, tiny));
}

fn holes_in_huge_pages_are_given_back() {
    let pool = arrays();
    let mut blocks = filled(&pool, BLOCK, 100 * MIB);
    let full = resident();
    drop_every_second(&mut blocks);
    pool.trim();
    let freed = full - resident();
    assert!(freed > 45 * MIB, "{freed} bytes of 50 MiB");
    blocks.iter().for_each(Held::check);
    drop(blocks);
    pool.trim();
    let freed = full - resident();
    assert!(freed > 95 * MIB, "{freed} bytes of 100 MiB");
}

fn split_huge_pages_get_no_advice_until_a_block_has_them_whole() {
    let pool = arrays();
    let mut blocks = filled(&pool, 700_000, 42 * MIB);
    assert!(is_advised_huge(blocks[30].address()), "before");
    drop_every_second(&mut blocks);
    let first = blocks[10].address();
    pool.trim_parts();
    assert!(!is_advised_huge(first), "the kernel may fill the holes");
    drop(blocks);
    let whole = Held::filled(&*pool, 38 * MIB, 1);
    assert!((whole.address()..whole.address() + whole.asked).contains(&first), "it lies elsewhere");
    assert!(is_advised_huge(first), "afterwards");
}

fn parts_of_huge_pages_can_be_given_back() {
    let pool = any_blocks();
    let mut blocks = filled(&pool, 900 << 10, 60 * MIB);
    assert!(huge(&pool) > 20 * MIB);
    drop_every_second(&mut blocks);
    pool.trim();
    assert!(pool.idle() > 4 * MIB, "every huge page is in use in part");
    assert!(pool.trim_parts() > 4 * MIB);
    assert_eq!(pool.idle(), 0);
    blocks.into_iter().for_each(Held::give_back);
}

fn who_asks_for_none_gets_none() {
    let plain = Options { huge: false, ..Options::default() };
    let at_once = Options { decay: Some(Duration::ZERO), ..Options::default() };
    for pool in [Pool::new(plain), Pool::new(at_once)] {
        let blocks = filled(&pool, BLOCK, 40 * MIB);
        assert_eq!(huge(&pool), 0);
        drop(blocks);
    }
}
