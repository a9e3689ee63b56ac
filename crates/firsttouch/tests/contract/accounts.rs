//! What an allocator tells of itself: totals, and the blocks it has.

use super::Make;
use super::common::held::Held;
use super::common::process::settles;
use super::sizes::up_to;
use firsttouch::Stats;
use firsttouch::allocator::find;
use firsttouch::scratch::Buffer;
use firsttouch::sources::Pages;

pub fn add_up(make: Make) {
    let allocator = make();
    assert_eq!(allocator.stats(), Stats::default());
    let first = Held::filled(&*allocator, 1 << 20, 0);
    let counts = allocator.stats().blocks > 0;
    assert!(counts || find::<Pages>(&allocator).is_none());
    first.give_back();
    assert!([0, 1 << 20].contains(&allocator.stats().peak_in_use), "not every one knows it");
    let mut served = 1 << 20;
    let mut blocks = Vec::new();
    for (index, size) in up_to(9 << 20).enumerate() {
        blocks.push(Held::filled(&*allocator, size, index as u64));
        served += size as u64;
        // Not every one knows peaks.
        let peaks = |stats: &Stats| stats.peak_active == 0 || stats.peak_active + (1 << 20) >= stats.active;
        settles(&*allocator, |stats| !counts || peaks(stats));
        let of_all = |stats: &Stats| (stats.allocations, stats.allocated_bytes);
        settles(&*allocator, |stats| !counts || of_all(stats) == (index as u64 + 2, served));
    }
}

/// Law 4: who keeps a list of live blocks knows each by its address, and nothing else.
pub fn knows_its_blocks(make: Make) {
    let allocator = make();
    let any: &dyn std::any::Any = &*allocator;
    if any.is::<Buffer>() {
        return; // large blocks are its upstream's; `tests/scratch` has its own
    }
    let mut blocks: Vec<_> = up_to(3 << 20).map(|size| Held::filled(&*allocator, size, 1)).collect();
    let keeps_list = blocks[0].is_known().is_some();
    let known = |block: &Held, there| block.is_known() == keeps_list.then_some(there);
    assert!(blocks.iter().all(|block| known(block, true)));
    blocks.iter_mut().for_each(|block| block.resize(block.asked + 70_000).unwrap());
    assert!(blocks.iter().all(|block| known(block, true)));
    let other = make();
    for block in blocks {
        let block = block.hand_over(&*other);
        assert!(known(&block, false), "another's");
        drop(block.hand_over(&*allocator));
    }
}
