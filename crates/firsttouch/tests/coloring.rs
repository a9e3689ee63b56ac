//! Blocks of a pool begin at different offsets in a page, so that loops over several arrays do not meet themselves.

mod common;

use common::held::Held;
use firsttouch::adaptors::{Options, Pool, huge_min};
use firsttouch::os::{huge_page_size, page_size};
use firsttouch::owners;
use std::ptr::{NonNull, with_exposed_provenance_mut};

/// On base pages and on huge ones, whole pages and not.
fn sizes() -> [usize; 6] {
    let page = page_size();
    let huge = huge_page_size().map_or(0, |_| huge_min(false));
    let large = (20 << 20).max(2 * huge);
    [40 * page, 50 * page + 100, 128 * page, 512 * page, large, large + page + 100]
}

#[test]
fn neighbors_begin_at_different_offsets() {
    for pool in [true, false].map(|arrays| Pool::new(Options { arrays, ..Options::default() })) {
        for size in sizes() {
            for recycled in [false, true] {
                let differ = || {
                    let blocks: Vec<_> = (0..9).map(|seed| Held::filled(&*pool, size, seed)).collect();
                    let offsets: Vec<usize> = blocks.iter().map(|block| block.address() % page_size()).collect();
                    assert!(offsets.iter().all(|offset| offset % 64 == 0));
                    offsets.windows(2).all(|pair| pair[0] != pair[1])
                };
                // Each processor counts its own turns, and the thread may change it.
                assert!((0..9).any(|_| differ()), "{size} bytes, {recycled}");
            }
        }
    }
}

/// A program that frees the page in which its block begins, and not the block, is told.
#[test]
fn only_its_first_byte_is_a_block() {
    let pool = Pool::new(Options { arrays: false, ..Options::default() });
    // Each processor counts its own turns, and the thread may change it.
    let blocks: Vec<_> = (0..9).map(|seed| Held::filled(&*pool, 200_000, seed)).collect();
    let block = blocks.iter().find(|block| block.address() % page_size() != 0).unwrap();
    let page = block.address() / page_size() * page_size();
    let is_block = |address: usize| owners::asked(NonNull::new(with_exposed_provenance_mut(address)).unwrap()) > 0;
    assert!(is_block(block.address()) && !is_block(page) && !is_block(block.address() + 64));
}
