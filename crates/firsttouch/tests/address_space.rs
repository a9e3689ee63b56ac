//! Laws 4 and 12: which addresses are ours, and what lies between them.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)] // Safety: personality(2) is called between fork and exec and changes nothing here.

mod common;

use common::alone::{alone, alone_after, each_alone};
use common::held::Held;
use common::mapped::{foreign, unmap};
use common::pattern::{self, Dice};
use common::process::address_space;
use firsttouch::adaptors::{Options, Pool, huge_min};
use firsttouch::address_map;
use firsttouch::error::Limit;
use firsttouch::os::{huge_page_size, page_size, shrink_address_space};
use firsttouch::owners::{self, Owner};
use firsttouch::{Allocator, Request};
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

each_alone! {
    somebody_in_our_way_is_left_alone somebody_in_a_hole_is_left_alone requests_that_fail_claim_nothing
    the_last_span_that_fits_is_found lookups_meet_segments_that_close too_many_pools_are_told
    what_outlives_its_allocator_stays
}

/// How many times larger huge pages are than 2 MiB.
fn times() -> usize {
    huge_page_size().unwrap_or(2 << 20) / (2 << 20)
}

/// Wherever a program keeps something, nobody takes it for ours.
fn foreign_addresses_stay_foreign() {
    fn a_function() {}
    static A_STATIC: u8 = 0;
    let boxed: Box<[u8]> = (0..100).collect();
    let a_local = 0u8;
    let mapped = foreign(0, page_size()).unwrap();
    let mut addresses = vec![a_function as *const () as usize, boxed.as_ptr() as usize, mapped.as_ptr() as usize];
    addresses.extend([&raw const A_STATIC as usize, &raw const a_local as usize, libc::mmap as *const () as usize]);
    let pools: Vec<_> = (0..1500).map(|_| Pool::new(Options { decay: None, ..Options::default() })).collect();
    let blocks: Vec<_> = pools.iter().map(|pool| Held::filled(&**pool, page_size(), 1)).collect();
    for block in &blocks {
        assert!(address_map::owner(block.address()).is_some());
    }
    for (index, &address) in addresses.iter().enumerate() {
        assert!(address_map::owner(address).is_none(), "address {index}, {address:#x}, is not ours");
    }
    // What the program maps later is not ours either.
    let later: Vec<_> = (0..64).filter_map(|_| foreign(0, 64 << 30)).collect();
    for range in &later {
        for address in [range.as_ptr() as usize, range.as_ptr() as usize + range.len() - 1] {
            assert!(address_map::owner(address).is_none(), "{address:#x} is not ours");
        }
    }
}

#[test]
fn foreign_addresses_are_told_from_ours() {
    alone("foreign_addresses_are_told_from_ours", foreign_addresses_stay_foreign);
}

/// `ulimit -s unlimited`, as is the custom on clusters, lets mappings grow upwards from the middle.
#[test]
fn foreign_addresses_are_told_from_ours_in_the_old_layout() {
    let old_layout = |command: &mut std::process::Command| {
        // SAFETY: personality is a plain system call.
        unsafe {
            command.pre_exec(|| {
                libc::personality(libc::ADDR_COMPAT_LAYOUT as libc::c_ulong);
                Ok(())
            });
        }
    };
    let name = "foreign_addresses_are_told_from_ours_in_the_old_layout";
    alone_after(name, old_layout, foreign_addresses_stay_foreign);
}

/// A mapping of somebody else's in the middle of where a segment grows is gone around, and survives the pool.
fn somebody_in_our_way_is_left_alone() {
    for huge in [false, true] {
        let pool = Pool::new(Options { huge, ..Options::default() });
        let first = Held::filled(&*pool, huge_min(false).max(5 << 20), 1);
        let ahead = first.address() + (64 << 20);
        let theirs: Vec<_> = (0..4).filter_map(|n| foreign(ahead + n * (9 << 20), page_size() << n)).collect();
        assert_eq!(theirs.len(), 4);
        let mut theirs: Vec<_> = theirs;
        theirs.iter_mut().for_each(|range| pattern::fill(range, 9));
        // Idle memory before them, and a request that reaches over them.
        Held::filled(&*pool, 50 << 20, 2).give_back();
        Held::filled(&*pool, 80 << 20, 3).give_back();
        pool.trim();
        assert!(pool.stats().idle < (times() * 4) << 20, "{:?}", pool.stats());
        let blocks: Vec<_> =
            (0..60).map(|seed| Held::filled(&*pool, (3 << 20) + seed * page_size(), seed as u64)).collect();
        common::held::check_apart(blocks.iter().chain([&first]));
        blocks.into_iter().for_each(Held::give_back);
        pool.trim();
        let zeros: Vec<_> = (0..60).map(|_| Held::zeros(&*pool, 3 << 20)).collect();
        zeros.iter().for_each(Held::check_zero);
        drop((zeros, first));
        drop(pool);
        theirs.iter().for_each(|range| pattern::check(range, 9));
    }
}

/// Somebody who settled in a hole of ours stays there when all around goes.
fn somebody_in_a_hole_is_left_alone() {
    for huge in [false, true] {
        let pool = Pool::new(Options { huge, decay: None, ..Options::default() });
        let first = Held::filled(&*pool, 70_000, 1);
        let (gone, last) = (
            Held::filled(&*pool, (times() * 20) << 20, 2),
            Held::filled(&*pool, ((times() * 30) << 20) + 5 * page_size(), 3),
        );
        let hole = gone.address() / page_size() * page_size() + ((times() * 5) << 20);
        gone.give_back();
        pool.trim();
        let theirs = foreign(hole, page_size()).unwrap();
        pattern::fill(theirs, 9);
        last.give_back();
        pool.trim();
        pattern::check(theirs, 9);
        Held::filled(&*pool, 60 << 20, 4).give_back();
        drop(first);
        drop(pool);
        pattern::check(theirs, 9);
    }
}

/// What the kernel refuses costs no address space, and does not keep others from having theirs.
fn requests_that_fail_claim_nothing() {
    for huge in [false, true] {
        let pool = Pool::new(Options { huge, ..Options::default() });
        Held::filled(&*pool, 5 << 20, 1).give_back();
        let before = address_space();
        let limit = if huge { 28 << 40 } else { 1900 << 30 };
        for part in 1..60 {
            let asked = Held::new(&*pool, Request::bytes(limit / 60 * part));
            drop(asked); // served where the kernel promises anything (vm.overcommit_memory=1)
        }
        pool.trim();
        let grown = address_space().saturating_sub(before);
        assert!(grown < 64 << 20, "{grown} bytes of address space are gone with requests that failed");
    }
}

/// Many free spans that are a little too short must not hide the one that fits.
fn the_last_span_that_fits_is_found() {
    let pool = Pool::new(Options { huge: false, decay: None, ..Options::default() });
    // 100 spans of 1 MiB and 16 KiB between living ones, and at the very end one of 285 pages.
    let short: Vec<_> =
        (0..100).map(|n| (Held::filled(&*pool, 260 * page_size(), n), Held::filled(&*pool, page_size(), n))).collect();
    let used: usize = 100 * 261;
    let spare = used.next_multiple_of(256) - used;
    let filler = Held::filled(&*pool, (spare + 512 - 285) * page_size(), 1);
    let last = Held::filled(&*pool, 100 * page_size(), 2);
    last.give_back();
    pool.trim();
    let (gone, _living): (Vec<_>, Vec<_>) = short.into_iter().unzip();
    gone.into_iter().for_each(Held::give_back);
    pool.trim();
    Held::filled(&*pool, 280 * page_size(), 3).give_back();
    drop(filler);
}

fn new_pool() -> Arc<Pool> {
    Pool::new(Options { decay: None, ..Options::default() })
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// Two blocks of a pool that lives no longer.
fn short_life(seed: u64) {
    let pool = new_pool();
    let (small, large) = (Held::filled(&*pool, 32 << 10, seed), Held::new(&*pool, Request::bytes(4 << 20)).unwrap());
    assert!(std::ptr::addr_eq(address_map::owner(small.address()).unwrap(), Arc::as_ptr(&pool)));
    drop((small, large));
}

/// More than there is room for at once, in a small address space.
fn short_lives_leave_nothing(is_small: bool) {
    shrink_address_space(is_small);
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
    alone("short_lived_pools_leave_nothing_behind", || short_lives_leave_nothing(false));
}

#[test]
fn short_lived_pools_leave_nothing_behind_in_a_small_address_space() {
    alone("short_lived_pools_leave_nothing_behind_in_a_small_address_space", || short_lives_leave_nothing(true));
}

/// Pools that hold all of a small address space are named as the reason.
fn too_many_pools_are_told() {
    shrink_address_space(true);
    let pools: Vec<_> = (0..200).map(|_| new_pool()).collect();
    let blocks: Vec<_> = pools.iter().map(|pool| Held::new(&**pool, Request::bytes(32 << 10))).collect();
    let served = blocks.iter().filter(|block| block.is_ok()).count();
    assert!((50..=112).contains(&served), "{served} pools have a segment");
    let refused = blocks.into_iter().find_map(Result::err).unwrap();
    assert_eq!(refused.limit, Limit::Claims);
    assert!(refused.to_string().contains("fewer pools"), "{refused}");
}

/// Lookups may come while the segments around are closed and made again.
fn lookups_meet_segments_that_close() {
    for (is_small, slots) in [(false, 16 << 40..32 << 40), (true, 16 << 30..128 << 30)] {
        shrink_address_space(is_small);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut dice = Dice(7);
                while !over.load(Relaxed) {
                    let theirs = foreign(0, 4096 + dice.roll(8 << 20)).unwrap();
                    for at in theirs.as_ptr_range().start as usize..theirs.as_ptr_range().end as usize {
                        if at % (1 << 20) == 0 {
                            assert!(address_map::owner(at).is_none());
                        }
                    }
                    // In the slots that are claimed, where nobody's memory lies.
                    let _ = address_map::is_foreign(slots.start + dice.roll(4096) * (slots.len() >> 12));
                    unmap(theirs);
                }
            });
            for seed in 0..200 {
                short_life(seed);
            }
            over.store(true, Relaxed);
        });
    }
}

/// A block that outlives its allocator is nobody's, and not foreign either.
fn what_outlives_its_allocator_stays() {
    for is_small in [false, true] {
        shrink_address_space(is_small);
        let pool = new_pool();
        let block = pool.allocate(Request::bytes(1 << 20)).unwrap();
        let at = block.address.as_ptr() as usize;
        drop(pool);
        assert!(matches!(owners::find(block.address), Owner::Gone));
        assert!(address_map::owner(at).is_none() && !address_map::is_foreign(at));
    }
}
