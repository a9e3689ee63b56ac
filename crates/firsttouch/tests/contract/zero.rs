//! Law 2: zero means zero, recycled or fresh, and `Block.zeroed` never lies (every `Held` checks that as it is made, in
//! random programs as well).

use super::Make;
use super::common::held::Held;
use super::sizes::sizes;

pub fn after_everything_was_dirty(make: Make) {
    let allocator = make();
    let dirt: Vec<_> = sizes().map(|size| Held::filled(&*allocator, size, size as u64)).collect();
    dirt.into_iter().for_each(Held::give_back);
    let blocks: Vec<_> = sizes().rev().map(|size| Held::zeros(&*allocator, size)).collect();
    blocks.iter().for_each(Held::check_zero);
}

/// What is not there need not be cleared; what is, on the last page too, must be.
pub fn recycled_one_by_one(make: Make) {
    let allocator = make();
    for size in sizes() {
        let others = [size, size - size / 3, size + size / 20, size / 2 + 1].into_iter().zip([4096, 1 << 20].repeat(2));
        for (other, step) in others.take(if size > 5 << 20 { 2 } else { 4 }) {
            allocator.trim();
            let mut sparse = Held::zeros(&*allocator, size);
            sparse.bytes().iter_mut().step_by(step).for_each(|byte| *byte = 7);
            sparse.bytes()[size - 1] = 7;
            drop(sparse);
            Held::zeros(&*allocator, other).check_zero();
        }
    }
}
