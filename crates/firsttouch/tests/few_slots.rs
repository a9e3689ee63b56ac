//! Laws 4 and 8 where segments have no slots of their own: they lie among everybody's memory, and an address still knows
//! its owner.

#![cfg(target_os = "linux")]
mod common;

use common::alone::alone;
use common::held::Held;
use common::mapped::{foreign, unmap};
use common::process::address_space;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::address_map;
use firsttouch::os::shrink_slots;
use firsttouch::{Allocator, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn new_pool() -> Arc<Pool> {
    Pool::new(Options { decay: None, ..Options::default() })
}

/// Numbers that look random (xorshift).
fn numbers(mut at: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        at ^= at << 13;
        at ^= at >> 7;
        at ^= at << 17;
        (at % below as u64) as usize
    }
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// Two blocks of a pool that lives no longer.
fn short_life(seed: u64) {
    let pool = new_pool();
    let (small, large) = (Held::filled(&*pool, 32 << 10, seed), Held::new(&*pool, Request::bytes(4 << 20)).unwrap());
    assert_eq!(address_map::owner(small.address()).unwrap().expression(), pool.expression());
    drop((small, large));
}

fn short_lives_leave_nothing(slots: usize) {
    shrink_slots(slots);
    let others: Vec<_> = (0..4).map(|_| new_pool()).collect();
    let living: Vec<_> = others.iter().map(|pool| Held::filled(&**pool, 32 << 10, 1)).collect();
    (0..20).for_each(short_life);
    let before = (address_space(), mappings());
    (0..300).for_each(short_life);
    let after = (address_space(), mappings());
    assert!(after.0 <= before.0 + (32 << 20), "address space grew from {} to {}", before.0, after.0);
    assert!(after.1 <= before.1 + 20, "mappings grew from {} to {}", before.1, after.1);
    drop(living);
}

#[test]
fn short_lived_pools_leave_nothing_behind() {
    alone("short_lived_pools_leave_nothing_behind", || short_lives_leave_nothing(4));
}

#[test]
fn short_lived_pools_leave_nothing_behind_in_a_small_address_space() {
    alone("short_lived_pools_leave_nothing_behind_in_a_small_address_space", || short_lives_leave_nothing(0));
}

/// Lookups may come while the segments around are closed and made again.
#[test]
fn lookups_meet_segments_that_close() {
    alone("lookups_meet_segments_that_close", || {
        for slots in [0, 1, 4] {
            shrink_slots(slots);
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut random = numbers(7);
                    while !over.load(Relaxed) {
                        let theirs = foreign(0, 4096 + random(8 << 20)).unwrap();
                        for at in theirs.as_ptr_range().start as usize..theirs.as_ptr_range().end as usize {
                            if at % (1 << 20) == 0 {
                                assert!(address_map::owner(at).is_none());
                            }
                        }
                        // In the slots that are claimed, where nobody's memory lies.
                        let _ = address_map::is_foreign((16 << 40) + random(4 << 36));
                        unmap(theirs);
                    }
                });
                for seed in 0..200 {
                    short_life(seed);
                }
                over.store(true, Relaxed);
            });
        }
    });
}

/// A block that outlives its allocator is nobody's, and not foreign either.
#[test]
fn what_outlives_its_allocator_stays() {
    alone("what_outlives_its_allocator_stays", || {
        for slots in [0, 4] {
            shrink_slots(slots);
            let pool = new_pool();
            let block = pool.allocate(Request::bytes(1 << 20)).unwrap();
            let at = block.address.as_ptr() as usize;
            drop(pool);
            assert!(matches!(address_map::holder(at), address_map::Holder::Gone));
            assert!(address_map::owner(at).is_none() && !address_map::is_foreign(at));
        }
    });
}
