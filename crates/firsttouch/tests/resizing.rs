//! A block of whole pages that shrinks returns the pages that it no longer needs, and one that grows may move.

mod common;

use common::held::Held;
use firsttouch::Allocator;
use firsttouch::adaptors::{Options, Origin, Pool};
use firsttouch::pages::placement::{Page, Placement, Populate};
use firsttouch::sources::{Calloc, Pages};
use firsttouch::why::why;
use std::sync::Arc;

const MIB: usize = 1 << 20;

fn placed(page: Page) -> Arc<Pages> {
    Pages::placed(Placement { page, populate: Populate::Best, ..Placement::default() })
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

#[test]
fn the_receipt_says_what_is_there() {
    let source = placed(Page::Base);
    let mut block = Held::filled(&*source, 8 * MIB, 1);
    block.resize(MIB).unwrap();
    let (start, receipt) = source.receipt(block.address() + 4096).unwrap();
    assert_eq!((start, receipt.asked, receipt.bytes), (block.address(), MIB, MIB));
    assert!(source.receipt(start + 2 * MIB).is_none());
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
    assert_eq!((told.asked, told.origin, told.owner.as_deref()), (100_000, Origin::Off, Some(&*pool.expression())));
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
