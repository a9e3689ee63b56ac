//! Blocks overlap no other live block, up to the last usable byte.

use super::Make;
use super::common::held::{Held, check_apart};
use super::sizes::up_to;

pub fn no_two_blocks_overlap(make: Make) {
    let allocator = make();
    let mut blocks = Vec::new();
    for round in 0..4u64 {
        for (index, size) in up_to(3 << 20).enumerate() {
            blocks.push(Held::filled(&*allocator, size, round << 8 | index as u64));
        }
        check_apart(&blocks);
        let mut index = 0;
        blocks.retain(|block| {
            block.check();
            index += 1;
            index % 3 != round as usize % 3
        });
    }
    blocks.into_iter().for_each(Held::give_back);
}

/// Every block keeps its pattern while its neighbours come, are written to their end, and go.
pub fn nobody_else_writes(make: Make) {
    let allocator = make();
    let sizes = [1, 100, 5000, 40_000, 70_000, 200_000, 600_000, 1_100_000];
    let mut blocks: Vec<_> = (0..64).map(|index| Held::filled(&*allocator, sizes[index % 8], index as u64)).collect();
    for step in 0..300 {
        let at = step * 37 % blocks.len();
        let gone = blocks.swap_remove(at);
        gone.give_back();
        blocks.push(Held::filled(&*allocator, sizes[step * 5 % 8] + step, step as u64 + 1000));
    }
    blocks.into_iter().for_each(Held::give_back);
}
