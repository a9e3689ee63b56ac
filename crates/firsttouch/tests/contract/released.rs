//! All memory goes with its allocator; live blocks stay (law 8).

#![allow(unsafe_code)] // Safety: owners are asked for while their blocks live.

use super::Make;
use super::common::held::Held;
use firsttouch::adaptors::Pool;
use firsttouch::address_map;
use firsttouch::allocator::find;
use firsttouch::owners;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::Arc;

pub fn dropped_with_nothing_alive(make: Make) {
    for _ in 0..3 {
        let allocator = make();
        let block = Held::filled(&*allocator, 5 << 20, 1);
        let address = block.address();
        assert_eq!(address_map::owner(address).is_some(), find::<Pool>(&allocator).is_some());
        let at = NonNull::new(with_exposed_provenance_mut(address)).unwrap();
        // SAFETY: the block lives.
        let owner = unsafe { owners::shared(at) }.map(|owner| Arc::downgrade(&owner));
        block.give_back();
        drop(allocator);
        // Another test may have got the address meanwhile, but not with the same owner, whose place the weak reference keeps.
        let now = address_map::owner(address);
        assert!(owner.is_none_or(|gone| now.is_none_or(|now| !std::ptr::addr_eq(now, gone.as_ptr()))));
    }
}

pub fn dropped_with_living_blocks(make: Make) {
    let allocator = make();
    let (left, gone) = (Held::filled(&*allocator, 300_000, 2), Held::filled(&*allocator, 3 << 20, 3));
    gone.give_back();
    let left = left.leak();
    let address = left.as_ptr() as usize;
    let gone = Arc::as_ptr(&allocator);
    drop(allocator); // of a buffer, the upstream stays for its large blocks
    assert!(address_map::owner(address).is_none_or(|owner| !std::ptr::addr_eq(owner, gone)), "it is gone and owns it");
    // Nobody else gets that memory.
    let other = make();
    let blocks: Vec<_> = (0..40).map(|seed| Held::filled(&*other, 100_000 << (seed % 5), seed)).collect();
    super::common::pattern::check(left, 2);
    drop(blocks);
}
