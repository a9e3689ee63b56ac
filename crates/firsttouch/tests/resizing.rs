//! A block of whole pages that shrinks returns the pages that it no longer needs; one that grows takes its pages along.

mod common;

use common::alone::alone;
use common::held::{Held, check_apart};
use firsttouch::adaptors::{Options, Origin, Pool};
use firsttouch::os::{Call, fail_after};
use firsttouch::pages::placement::{Page, Placement};
use firsttouch::sources::{Calloc, Pages};
use firsttouch::why::why;
use firsttouch::{Allocator, Request};
use std::sync::Arc;

const MIB: usize = 1 << 20;

fn placed(page: Page) -> Arc<Pages> {
    Pages::placed(Placement { page, populate: Some(0), ..Placement::default() })
}

#[test]
fn its_end_goes_back() {
    for source in [Pages::new(false), Pages::new(true), placed(Page::Base), placed(Page::Transparent)] {
        let mut block = Held::filled(&*source, 24 * MIB + 100, 1);
        for size in [24 * MIB, 9 * MIB, 300_000, 10] {
            block.resize(size).unwrap();
            block.check();
            let active = source.stats().active;
            assert!(active >= size && active - size < 2 * MIB + 64 * 1024, "{}: {size}: {active}", source.expression());
            assert_eq!(source.stats().idle, 0);
        }
        for size in [10_000, 5 * MIB] {
            block.resize(size).unwrap();
            block.check();
        }
        block.give_back();
        assert_eq!((source.stats().active, source.stats().idle), (0, 0));
    }
}

#[test]
fn most_of_a_large_block_goes_back_to_the_library() {
    let source = Calloc::aligned(4096).unwrap();
    let mut block = Held::filled(&*source, 24 * MIB, 1);
    block.resize(300_000).unwrap();
    block.check();
    assert!(block.usable() < MIB);
    block.give_back();
}

/// Copied, its pages would be faulted in anew at each step: 6 million in all.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))] // whose realloc(3) moves pages
fn a_block_of_malloc_takes_its_pages_along() {
    use firsttouch::os::usage;
    alone("a_block_of_malloc_takes_its_pages_along", || {
        let source = firsttouch::sources::Malloc::new();
        let mut block = Held::filled(&*source, 64 * MIB, 1);
        block.seed = None; // to write nothing
        let before = usage().minor_faults;
        (1..400).for_each(|step| block.resize(64 * MIB + step * (64 << 10)).unwrap());
        assert!(usage().minor_faults - before < 100_000);
        block.seed = Some(1);
        common::pattern::check(&block.bytes()[..64 * MIB], 1);
    });
}

#[test]
fn the_receipt_says_what_is_there() {
    let source = placed(Page::Base);
    let mut block = Held::filled(&*source, 8 * MIB, 1);
    block.resize(MIB).unwrap();
    let (start, receipt) = source.receipt(block.address() + 4096).unwrap();
    assert_eq!((start, receipt.asked, receipt.bytes), (block.address(), MIB, MIB));
    assert!(source.receipt(start + 2 * MIB).is_none());
}

/// Buffers that grow in turn stand in each other's way. Copied, each would be there twice at every step.
#[test]
fn blocks_that_grow_in_turn_take_their_pages_along() {
    for pool in [true, false].map(|arrays| Pool::new(Options { arrays, ..Options::default() })) {
        let mut blocks: Vec<_> = (0..3).map(|seed| Held::filled(&*pool, 8 * MIB, seed)).collect();
        let mut moves = 0;
        for size in (1..24).map(|step| (8 + 3 * step) * MIB) {
            for block in &mut blocks {
                let (before, served) = (block.address(), pool.stats().allocations);
                block.resize(size).unwrap();
                block.check();
                assert_eq!(why(block.address()).unwrap().asked, size);
                moves += usize::from(block.address() != before && pool.stats().allocations == served);
                block.fill(size as u64);
            }
            let stats = pool.stats();
            assert_eq!((stats.blocks, stats.in_use), (3, blocks.iter().map(|block| block.asked).sum()));
        }
        let mut aligned = Held::new(&*pool, Request::bytes(8 * MIB).aligned(1 << 20).unwrap()).unwrap();
        for size in [9 * MIB, 90 * MIB] {
            aligned.reallocate(Request::bytes(size).aligned(1 << 20).unwrap()).unwrap();
            assert!(aligned.address().is_multiple_of(1 << 20));
        }
        assert!(moves > 3 || cfg!(not(target_os = "linux")), "{moves} moves"); // from 5.7 on
        blocks.into_iter().for_each(Held::give_back);
        aligned.give_back();
        pool.trim();
        assert_eq!((pool.stats().active, pool.stats().idle), (0, 0));
    }
}

/// The target of a move is not mapped any more when the system refuses it. Once it was out of memory, it is asked again.
#[test]
fn a_move_that_the_system_refuses_loses_nothing() {
    alone("a_move_that_the_system_refuses_loses_nothing", || {
        for pass in [0, 1, 2, 3, 4, 5, 100] {
            let pool = Pool::new(Options { decay: None, ..Options::default() });
            let mut block = Held::filled(&*pool, 5 * MIB, 1);
            let behind = Held::filled(&*pool, 5 * MIB, 2);
            Held::filled(&*pool, 15 * MIB, 3).give_back();
            let served = pool.stats().allocations;
            fail_after(&[Call::Map], pass, 1);
            let grown = block.resize(12 * MIB);
            fail_after(&[], 0, 0);
            assert!(grown.is_ok());
            assert!(pass < 100 || pool.stats().allocations == served || cfg!(not(target_os = "linux")));
            block.check();
            let others: Vec<_> = (0..60).map(|seed| Held::filled(&*pool, 400_000, seed)).collect();
            check_apart(others.iter().chain([&block, &behind]));
            others.into_iter().for_each(Held::give_back);
            pool.trim();
            Held::zeros(&*pool, 40 * MIB).give_back();
            block.give_back();
            behind.give_back();
            pool.trim();
            let stats = pool.stats();
            assert_eq!((stats.active, stats.idle), (0, 0));
            assert!(stats.mapped < 4 * MIB, "{stats:?}");
        }
    });
}

/// Where the pages lie in several mappings, one is moved after the other, and the system may refuse in between.
#[test]
#[cfg(target_os = "linux")] // alone moves pages
#[allow(unsafe_code)] // Safety: pages that were mapped for one test are written by it.
fn pages_that_were_moved_before_a_refusal_come_back() {
    use firsttouch::os::{commit, map_aligned, page_size, remap, unmap};
    use std::ptr::with_exposed_provenance_mut;
    alone("pages_that_were_moved_before_a_refusal_come_back", || {
        let size = 16 * page_size();
        let [from, to] = [(); 2].map(|()| map_aligned(size, page_size(), None).unwrap());
        let page = |base: usize, page: usize| with_exposed_provenance_mut::<u8>(base + page * page_size());
        // SAFETY: both were mapped for this test alone.
        unsafe {
            unmap(to + 5 * page_size(), size - 5 * page_size()).unwrap();
            (0..16).for_each(|at| page(if at < 5 { to } else { from }, at).write_bytes(at as u8 + 1, page_size()));
            fail_after(&[Call::Map], 0, 1);
            assert!(remap(from, to, size).is_err());
            fail_after(&[], 0, 0);
            for at in 0..16 {
                let found = (page(from, at).read(), page(from, at).add(page_size() - 1).read());
                assert_eq!(found, (at as u8 + 1, at as u8 + 1));
            }
            assert_eq!(commit(to, size), Ok(to), "the target is not mapped");
        }
    });
}

/// Also where what is left joins free memory before it.
#[test]
fn no_block_is_where_one_was() {
    let pool = Pool::new(Options { decay: None, ..Options::default() });
    let (before, mut moved, behind) =
        (Held::filled(&*pool, 2 * MIB, 1), Held::filled(&*pool, 2 * MIB, 2), Held::filled(&*pool, 2 * MIB, 3));
    before.give_back();
    pool.trim();
    let left = moved.address();
    moved.resize(20 * MIB).unwrap();
    assert_ne!(moved.address(), left);
    assert_eq!(why(left), None);
    behind.give_back();
}

#[test]
fn any_block_is_explained() {
    let pool = Pool::new(Options { huge: false, ..Options::default() });
    let block = Held::filled(&*pool, 100_000, 1);
    let told = why(block.address()).unwrap();
    assert_eq!((told.asked, told.origin, told.is_huge), (100_000, Origin::Unfit, false));
    assert!(told.span.0 <= block.address() && block.address() + told.asked <= told.span.0 + told.span.1);
    assert!(told.origin.to_string().starts_with("fresh, on base pages"));
    assert_eq!(why(block.address() + 64), None, "no block begins there");
    let address = block.address();
    block.give_back();
    assert_eq!(why(address), None);
    let again = (0..20).any(|seed| {
        let block = Held::filled(&*pool, 100_000, seed);
        why(block.address()).unwrap().origin == Origin::Recycled
    });
    assert!(again);
    assert_eq!(why(&raw const address as usize), None, "it is on the stack");
}
