//! The statistics of every allocator that keeps them add up.

use super::Make;
use super::common::held::Held;
use super::common::process::settles;
use super::sizes::up_to;
use firsttouch::Stats;
use firsttouch::adaptors::Pool;
use firsttouch::allocator::find;
use firsttouch::scratch::Buffer;
use firsttouch::sources::Pages;

fn sound(stats: &Stats) -> bool {
    // Not every source tells fresh memory from recycled.
    let told = stats.recycled_bytes + stats.first_touched_small_bytes + stats.first_touched_huge_bytes;
    stats.in_use <= stats.active
        && stats.active + stats.idle + stats.retained <= stats.mapped
        && stats.recycled <= stats.allocations
        && (told == 0 || told >= stats.active as u64)
}

pub fn add_up(make: Make) {
    let allocator = make();
    assert_eq!(allocator.stats(), Stats::default());
    let first = Held::filled(&*allocator, 1 << 20, 0);
    let counts = allocator.stats().blocks > 0;
    assert!(counts || find::<Pages>(&allocator).is_none());
    first.give_back();
    let (mut asked, mut served) = (0, 1 << 20);
    let mut blocks = Vec::new();
    for (index, size) in up_to(9 << 20).enumerate() {
        blocks.push(Held::filled(&*allocator, size, index as u64));
        asked += size;
        served += size as u64;
        // Nor does every one know peaks.
        let peaks = |stats: &Stats| stats.peak_active == 0 || stats.peak_active + (1 << 20) >= stats.active;
        settles(&*allocator, |stats| !counts || sound(stats) && peaks(stats));
        settles(&*allocator, |stats| !counts || stats.active >= asked || find::<Pool>(&allocator).is_none());
        settles(&*allocator, |stats| !counts || (stats.blocks, stats.in_use) == (index + 1, asked));
        let of_all = |stats: &Stats| (stats.allocations, stats.allocated_bytes);
        settles(&*allocator, |stats| !counts || of_all(stats) == (index as u64 + 2, served));
    }
    for mut block in blocks {
        let (size, target) = (block.asked, block.asked / 2 + 1);
        block.resize(target).unwrap();
        asked = asked + target - size;
        settles(&*allocator, |stats| !counts || sound(stats) && stats.in_use == asked);
        asked -= target;
    }
    settles(&*allocator, |stats| (stats.blocks, stats.in_use, stats.active) == (0, 0, 0));
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

pub fn the_expression_names_it(make: Make) {
    let expression = make().expression();
    assert!(expression.contains('(') && expression.ends_with(')'), "{expression}");
}
