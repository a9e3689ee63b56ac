//! Law 1: blocks have at least the requested size and alignment, and are writable as a whole.

use super::Make;
use super::common::held::Held;
use super::sizes::up_to;
use firsttouch::Request;
use firsttouch::layout::{DEFAULT_ALIGN, MAX_ALIGN};

pub fn size_and_alignment(make: Make) {
    let allocator = make();
    for (seed, size) in up_to(9 << 20).chain(up_to(3 << 20)).chain([32 << 20]).enumerate() {
        let block = Held::filled(&*allocator, size, seed as u64);
        assert!(block.address().is_multiple_of(DEFAULT_ALIGN));
        block.give_back();
    }
}

pub fn every_alignment(make: Make) {
    let allocator = make();
    let mut blocks = Vec::new();
    for shift in 0..=30 {
        for size in [1, 4096, (64 << 10) + 1, 2 << 20] {
            for zeroed in [false, true] {
                let request = Request::bytes(size).with_zeroed(zeroed).aligned(1 << shift).unwrap();
                let mut block = Held::new(&*allocator, request).unwrap();
                block.fill(shift);
                // Half of them live on, so that the next ones find both kept and fresh memory.
                if zeroed && shift < 24 {
                    blocks.push(block);
                }
            }
            if shift >= 24 {
                // The C library maps the alignment with the block. Of mappings that add up to more than the memory, the
                // system lets no other test fork.
                allocator.trim();
            }
        }
    }
    assert_eq!(1 << 30, MAX_ALIGN);
    blocks.into_iter().for_each(Held::give_back);
}

pub fn tiny_and_empty(make: Make) {
    let allocator = make();
    let request = Request::bytes(0);
    assert_eq!(request.size(), 1, "nothing is served as one byte");
    let blocks: Vec<_> = (0..100).map(|_| Held::new(&*allocator, request).unwrap()).collect();
    super::common::held::check_apart(&blocks);
}
