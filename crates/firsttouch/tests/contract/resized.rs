//! Reallocation keeps contents in both directions, in place or moved.

use super::Make;
use super::common::held::Held;
use super::sizes::up_to;

pub fn contents_come_along(make: Make) {
    let allocator = make();
    for size in up_to(3 << 20) {
        for other in [1, 64, 4097, 40_000, 300_000, 3 << 20] {
            let mut block = Held::filled(&*allocator, size, 3);
            block.resize(other).unwrap();
            block.resize(size).unwrap();
            block.give_back();
        }
    }
}

pub fn in_place_or_not_at_all(make: Make) {
    let allocator = make();
    for size in up_to(3 << 20) {
        let mut block = Held::filled(&*allocator, size, 4);
        let (address, usable) = (block.address(), block.usable());
        assert!(block.resize_in_place(usable), "what may be used may be had");
        for other in [usable + 1, usable + 100_000, usable * 2, usable / 2 + 1, 1, size] {
            block.resize_in_place(other);
            assert_eq!(block.address(), address);
        }
        block.give_back();
    }
}

pub fn neighbours_stay(make: Make) {
    let allocator = make();
    for size in [5000, 70_000, 1 << 20] {
        let mut blocks: Vec<_> = (0..12).map(|seed| Held::filled(&*allocator, size, seed)).collect();
        for step in 0..60 {
            let at = step * 5 % blocks.len();
            let target = size / 2 + (step * 7 % 11) * size / 4 + step;
            if step % 3 == 0 || !blocks[at].resize_in_place(target) {
                blocks[at].resize(target).unwrap();
            }
            blocks.iter().for_each(Held::check);
        }
        super::common::held::check_apart(&blocks);
    }
}

/// As `ndarray.resize` in a loop does: up byte by byte in all orders of magnitude, and down again.
pub fn a_long_walk(make: Make) {
    let allocator = make();
    let mut block = Held::filled(&*allocator, 1, 5);
    let up: Vec<usize> =
        std::iter::successors(Some(1usize), |n| Some(n + n / 3 + 1)).take_while(|&n| n < 12 << 20).collect();
    for &size in up.iter().chain(up.iter().rev()) {
        block.resize(size).unwrap();
    }
    block.give_back();
}
