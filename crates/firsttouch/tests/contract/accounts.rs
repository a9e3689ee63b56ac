//! The statistics add up wherever an allocator keeps them.

use super::Make;
use super::common::held::Held;
use super::sizes::SIZES;
use firsttouch::Stats;

fn check(stats: &Stats) {
    assert!(stats.in_use <= stats.active, "{stats:?}");
    assert!(stats.active + stats.idle + stats.retained <= stats.mapped, "{stats:?}");
    assert!(stats.recycled <= stats.allocations, "{stats:?}");
}

pub fn add_up(make: Make) {
    let allocator = make();
    assert_eq!(allocator.stats(), Stats::default());
    let first = Held::filled(&*allocator, 1 << 20, 0);
    let counts_blocks = allocator.stats().blocks > 0;
    let counts_bytes = allocator.in_segments();
    first.give_back();
    let (mut asked, mut served) = (0, 1 << 20);
    let mut blocks = Vec::new();
    for (index, size) in SIZES.into_iter().enumerate() {
        blocks.push(Held::filled(&*allocator, size, index as u64));
        asked += size;
        served += size as u64;
        let stats = allocator.stats();
        check(&stats);
        if counts_blocks {
            assert_eq!((stats.blocks, stats.in_use), (index + 1, asked), "{stats:?}");
            assert_eq!((stats.allocations, stats.allocated_bytes), (index as u64 + 2, served), "{stats:?}");
            assert!(stats.peak_active.max(1 << 20) + (1 << 20) >= stats.active, "{stats:?}");
        }
        if counts_bytes {
            assert!(stats.active >= asked, "{stats:?}");
        }
    }
    for mut block in blocks {
        let (size, target) = (block.asked, block.asked / 2 + 1);
        block.resize(target).unwrap();
        asked = asked + target - size;
        check(&allocator.stats());
        if counts_blocks {
            assert_eq!(allocator.stats().in_use, asked);
        }
        asked -= target;
    }
    let stats = allocator.stats();
    check(&stats);
    assert_eq!((stats.blocks, stats.in_use, stats.active), (0, 0, 0), "{stats:?}");
}

pub fn the_expression_names_it(make: Make) {
    let expression = make().expression();
    assert!(expression.contains('(') && expression.ends_with(')'), "{expression}");
}
