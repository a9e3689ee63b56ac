//! Blocks of which a program uses little stay so in a pool for programs that know nothing of pools.

mod common;

use common::alone::alone;
use common::held::Held;
use common::process::resident;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::os::{huge_page_size, nodes_of};
use firsttouch::{Allocator, Request};

const MIB: usize = 1 << 20;

/// Whether the kernel tells which pages were only read, and huge pages are not larger than what is sparse here.
fn is_told() -> bool {
    let here = 1;
    nodes_of(&[&raw const here as usize], &mut [0]).is_ok() && huge_page_size().is_none_or(|size| size <= 2 * MIB)
}

/// Zeros of which every second MiB is written; `Held` reads them all.
fn sparse(pool: &dyn Allocator, size: usize) -> Held<'_> {
    let mut block = Held::zeros(pool, size);
    block.bytes().iter_mut().step_by(2 * MIB).for_each(|byte| *byte = 1);
    block
}

#[test]
fn a_sparse_table_that_is_scanned_gets_no_huge_pages() {
    alone("a_sparse_table_that_is_scanned_gets_no_huge_pages", || {
        if !is_told() {
            return;
        }
        let pool = Pool::guest(Options::default());
        for size in [8 * MIB, 8 * MIB, 80 * MIB, 80 * MIB, 80 * MIB] {
            let before = resident();
            let table = sparse(&*pool, size);
            let grown = resident().saturating_sub(before);
            assert!(grown < 4 * MIB, "{grown} bytes for a sparse table of {size}");
            table.give_back();
        }
        assert_eq!(pool.stats().first_touched_huge_bytes, 0);
    });
}

#[test]
fn a_block_that_was_used_in_part_serves_a_sparse_one() {
    alone("a_block_that_was_used_in_part_serves_a_sparse_one", || {
        let pool = Pool::guest(Options::default());
        for part in [0, 60 * MIB] {
            for larger in [0, 20 * MIB] {
                pool.trim();
                Held::new(&*pool, Request::bytes(200 * MIB)).unwrap().give_back(); // all of the address space is there
                pool.trim();
                let before = resident();
                let mut first = Held::new(&*pool, Request::bytes(100 * MIB)).unwrap();
                first.bytes()[..part].fill(1);
                first.give_back();
                let second = sparse(&*pool, 100 * MIB + larger);
                let grown = resident().saturating_sub(before);
                assert!(grown < 16 * MIB, "{grown} bytes after {part}, {larger} more");
                second.give_back();
            }
        }
    });
}
