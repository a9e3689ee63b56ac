//! A block of whole pages that shrinks returns the pages that it no longer needs.

mod common;

use common::held::Held;
use firsttouch::Allocator;
use firsttouch::pages::placement::{Page, Placement, Populate};
use firsttouch::sources::{Aligned, Pages, PlacedPages};
use std::sync::Arc;

const MIB: usize = 1 << 20;

fn placed(pages: Vec<Page>) -> Arc<PlacedPages> {
    PlacedPages::new(Placement { pages, populate: Populate::Best, ..Placement::default() })
}

#[test]
fn its_end_goes_back() {
    let sources: [Arc<dyn Allocator>; 5] = [
        Pages::new(false),
        Pages::new(true),
        Aligned::new(4096).unwrap(),
        placed(vec![]),
        placed(vec![Page::Transparent]),
    ];
    for source in sources {
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
fn the_receipt_says_what_is_there() {
    let source = placed(vec![]);
    let mut block = Held::filled(&*source, 8 * MIB, 1);
    block.resize(MIB).unwrap();
    let (start, receipt) = source.receipt(block.address() + 4096).unwrap();
    assert_eq!((start, receipt.asked, receipt.bytes), (block.address(), MIB, MIB));
    assert!(source.receipt(start + 2 * MIB).is_none());
}
