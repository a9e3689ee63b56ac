//! Law 2: zero means zero, recycled or fresh, and `Block.zeroed` never lies (every `Held` checks that as it is made).

use super::Make;
use super::common::held::Held;
use super::sizes::{SIZES, up_to};
use firsttouch::Request;

pub fn after_everything_was_dirty(make: Make) {
    let allocator = make();
    let dirt: Vec<_> = SIZES.into_iter().map(|size| Held::filled(&*allocator, size, size as u64)).collect();
    dirt.into_iter().for_each(Held::give_back);
    let blocks: Vec<_> = SIZES.into_iter().rev().map(|size| Held::zeros(&*allocator, size)).collect();
    blocks.iter().for_each(Held::check_zero);
}

pub fn recycled_one_by_one(make: Make) {
    let allocator = make();
    for size in SIZES {
        let others = [size, size - size / 3, size + size / 20, size / 2 + 1];
        for other in others.into_iter().take(if size > 5 << 20 { 1 } else { 4 }) {
            Held::filled(&*allocator, size, 1).give_back();
            Held::zeros(&*allocator, other).check_zero();
        }
    }
}

/// Zeroed blocks over memory of which a part is fresh, a part given back, and a part dirty.
pub fn among_clean_and_dirty(make: Make) {
    let allocator = make();
    for piece in [4096, 64 << 10, 300 << 10] {
        for size in [piece * 3, piece * 7 + 1, piece * 30 - 1] {
            let mut dirt: Vec<_> = (0..64).map(|seed| Some(Held::filled(&*allocator, piece, seed))).collect();
            dirt.iter_mut().step_by(3).for_each(|block| drop(block.take()));
            allocator.trim();
            dirt.iter_mut().skip(1).step_by(3).for_each(|block| drop(block.take()));
            let between = Held::zeros(&*allocator, piece);
            drop(dirt);
            let mut block = Held::zeros(&*allocator, size);
            block.fill(7);
            between.check_zero();
        }
    }
}

/// Where zeros were not asked for, the word may be modest, but it is true.
pub fn unasked(make: Make) {
    let allocator = make();
    for round in 0..3 {
        for size in up_to(9 << 20) {
            let mut block = Held::new(&*allocator, Request::bytes(size)).unwrap();
            block.fill(round);
            block.give_back();
        }
        allocator.trim();
    }
}
