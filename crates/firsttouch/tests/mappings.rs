//! At `vm.max_map_count`: idle memory serves requests, whichever region it lies in.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)] // Safety: a mapping of the test's own is cut into many.

mod common;

use common::alone::alone;
use common::held::Held;
use common::limits;
use common::mapped::{foreign, unmap};
use common::process::address_space;
use firsttouch::adaptors::{Options, Pool, huge_min};
use firsttouch::allocator::Limit;
use firsttouch::os::page_size;
use firsttouch::{Allocator, Request};
use std::fs::read_to_string;
use std::ptr::null_mut;
use std::sync::Arc;

const MIB: usize = 1 << 20;
/// Whoever allows more would wait long for this test.
const MOST: usize = 300_000;

fn pool() -> Arc<Pool> {
    Pool::new(Options { decay: None, ..Options::default() })
}

/// Cuts memory into as many mappings as there may be, and returns it; `None` where these are too many.
fn exhaust() -> Option<&'static mut [u8]> {
    let limit: usize = read_to_string("/proc/sys/vm/max_map_count").unwrap().trim().parse().unwrap();
    if limit > MOST {
        return None;
    }
    let size = page_size();
    let many = foreign(0, 2 * limit * size).expect("address space");
    for page in many.chunks_exact_mut(size).skip(1).step_by(2) {
        // SAFETY: the page is the test's own, and nobody uses it.
        if unsafe { libc::mprotect(page.as_mut_ptr().cast(), size, libc::PROT_NONE) } != 0 {
            return Some(many);
        }
    }
    panic!("{limit} mappings and more");
}

/// Takes the mapping that Linux grants beyond the limit, so that it refuses even those that would join others.
fn exhaust_beyond() -> Option<&'static mut [u8]> {
    let many = exhaust()?;
    // SAFETY: anonymous mappings at addresses that the kernel chooses; neighbours that differ do not join.
    let more = |protection| unsafe {
        libc::mmap(null_mut(), page_size(), protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    };
    (0..MOST).any(|number| more([libc::PROT_NONE, libc::PROT_READ][number % 2]) == libc::MAP_FAILED).then_some(many)
}

fn requests(size: usize) -> [Request; 2] {
    [Request::bytes(size), Request::zeroed(size)]
}

#[test]
fn large_requests_take_what_was_freed_of_small_ones() {
    alone("large_requests_take_what_was_freed_of_small_ones", || {
        if huge_min(false) > 3 * MIB {
            return; // what is large here has no huge pages
        }
        let pool = &*pool();
        let small: Vec<_> = (0..60).map(|seed| Held::filled(pool, 200_000, seed)).collect();
        if exhaust().is_none() {
            return;
        }
        for request in requests(3 * MIB) {
            let error = Held::new(pool, request).err().expect("nothing is idle");
            assert!(matches!(error.limit, Limit::Maps { .. }), "{error}");
        }
        small.into_iter().for_each(Held::give_back);
        for _ in 0..3 {
            for (seed, request) in [3 * MIB, 5 * MIB].into_iter().flat_map(requests).enumerate() {
                let mut block = Held::new(pool, request).unwrap();
                block.fill(seed as u64);
                block.give_back();
            }
        }
    });
}

#[test]
fn small_requests_take_what_was_freed_of_large_ones() {
    alone("small_requests_take_what_was_freed_of_large_ones", || {
        let pool = &*pool();
        let large: Vec<_> = (0..5).map(|seed| Held::filled(pool, 3 * MIB, seed)).collect();
        if exhaust().is_none() {
            return;
        }
        large.into_iter().for_each(Held::give_back);
        let mut blocks: Vec<_> = (0..5u64)
            .flat_map(|seed| [20_000, 100_000, MIB].into_iter().flat_map(requests).map(move |request| (seed, request)))
            .map(|(seed, request)| {
                let mut block = Held::new(pool, request).unwrap();
                block.fill(seed);
                block
            })
            .collect();
        common::held::check_apart(&blocks);
        for block in &mut blocks {
            let more = block.asked + block.asked / 8;
            let _ = block.resize(more);
        }
        blocks.into_iter().for_each(Held::give_back);
    });
}

#[test]
fn what_is_not_mapped_does_not_hide_what_is() {
    alone("what_is_not_mapped_does_not_hide_what_is", || {
        let pool = &*pool();
        let mut large: Vec<_> = (0..8).map(|seed| Some(Held::filled(pool, 4 * MIB, seed))).collect();
        let mut free = |at: usize| large[at].take().unwrap().give_back();
        free(1);
        pool.trim(); // a hole of the size that is requested below
        if exhaust_beyond().is_none() {
            return;
        }
        free(3);
        free(4);
        assert!(Held::new(pool, Request::bytes(256 * MIB)).is_err());
        for request in [4 * MIB, 8 * MIB, 100_000].into_iter().flat_map(requests) {
            let mut block = Held::new(pool, request).unwrap();
            block.fill(1);
            block.give_back();
        }
    });
}

#[test]
fn once_at_the_limit_address_space_is_given_back_later() {
    alone("once_at_the_limit_address_space_is_given_back_later", || {
        let pool = &*pool();
        let mut blocks: Vec<_> = (0..40).map(|_| Some(Held::new(pool, Request::bytes(8 * MIB)).unwrap())).collect();
        let Some(many) = exhaust_beyond() else { return };
        assert!(Held::new(pool, Request::bytes(256 * MIB)).is_err());
        unmap(many);
        limits::set(libc::RLIMIT_AS, address_space() + 16 * MIB);
        blocks.iter_mut().step_by(2).for_each(|block| block.take().unwrap().give_back());
        Held::new(pool, Request::bytes(32 * MIB)).expect("what is idle makes room").give_back();
    });
}
