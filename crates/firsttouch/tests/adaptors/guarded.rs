//! Accesses beyond a guarded block fault at once; overruns too small to reach the guard are found by the canaries, at their
//! exact address.

#![allow(unsafe_code)] // Safety: accesses that no program should make happen in forked children, or stay on a page of ours.

use super::common::alone::each_alone;
use super::common::forked::fork;
use super::common::held::Held;
use super::common::limits;
use firsttouch::os::{Call, fail_after, huge_page_size, mapping_limit, page_size};
use firsttouch::sources::{Guarded, GuardedOptions, Overrun, Side};
use firsttouch::{Allocator, Request};
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;

each_alone! {
    an_access_beyond_stops use_after_free_stops large_blocks_stay_lazy a_system_that_refuses
    freed_memory_serves_other_sizes beyond_the_limit_of_mappings_blocks_are_unguarded
}

/// Writes a byte.
fn write(address: usize) {
    // SAFETY: what is there is inaccessible, a canary, or a block that the test holds.
    unsafe { with_exposed_provenance_mut::<u8>(address).write_volatile(7) }
}

/// Reads a byte.
fn read(address: usize) {
    // SAFETY: as above.
    unsafe { with_exposed_provenance_mut::<u8>(address).read_volatile() };
}

/// Runs `body` in a forked child, which it must kill.
fn dies(body: impl FnOnce()) {
    assert_eq!(fork(body).signal(), Some(libc::SIGSEGV));
}

fn huge() -> usize {
    huge_page_size().unwrap_or(2 << 20)
}

fn sizes() -> [usize; 9] {
    [1, 64, 1000, page_size(), 3 * page_size() + 64, 100_000, huge() - page_size(), huge(), 3 * huge() + 192]
}

fn guarded(side: Side, keep: usize) -> Arc<Guarded> {
    Guarded::new(GuardedOptions { side, keep })
}

fn an_access_beyond_stops() {
    let aligned = [128, page_size(), 1 << 16, huge(), 1 << 24];
    let aligned = aligned.into_iter().flat_map(|align| [100, 50_000, 2 * huge()].map(|size| (size, align)));
    let requests: Vec<_> = sizes().map(|size| (size, 64)).into_iter().chain(aligned).collect();
    for side in [Side::After, Side::Before] {
        let guarded = guarded(side, 0);
        for &(size, align) in &requests {
            let mut block = Held::new(&*guarded, Request::bytes(size).aligned(align).unwrap()).unwrap();
            block.fill(1);
            assert!(block.address().is_multiple_of(align));
            fork(|| write(block.address())).join();
            fork(|| write(block.address() + size - 1)).join();
            let end = (block.address() + size).next_multiple_of(align.min(page_size()));
            let (near, far) = match side {
                Side::After => (end, end + 1000),
                Side::Before => (block.address() - 1, block.address() - page_size()),
            };
            dies(|| write(near));
            dies(|| read(far));
            block.give_back();
        }
    }
}

fn use_after_free_stops() {
    for side in [Side::After, Side::Before] {
        let guarded = guarded(side, 20 << 20);
        let freed: Vec<_> = [1, 1000, page_size(), 50_000, huge()]
            .map(|size| {
                let block = Held::filled(&*guarded, size, 1);
                let address = block.address();
                block.give_back();
                (address, size)
            })
            .into();
        for &(address, size) in &freed {
            dies(|| read(address));
            dies(|| write(address + size - 1));
        }
        // Later blocks lie elsewhere.
        let later = Held::filled(&*guarded, 1000, 2);
        assert!(freed.iter().all(|&(address, size)| !(address..address + size).contains(&later.address())));
    }
}

/// What is kept is bounded, the oldest goes first, and all of it goes where it is needed.
#[test]
fn what_is_kept_is_bounded() {
    let guarded = guarded(Side::After, 1 << 20);
    for seed in 0..100 {
        Held::filled(&*guarded, 50_000, seed).give_back();
        assert!(guarded.stats().idle <= 1 << 20);
    }
    let stats = guarded.stats();
    assert_eq!((stats.blocks, stats.in_use, stats.active, stats.allocations), (0, 0, 0, 100));
    assert!(stats.idle > 900_000, "{stats:?}");
    Held::filled(&*guarded, 5 << 20, 1).give_back();
    assert!(guarded.stats().idle > 900_000, "what is larger than all that may be kept goes at once");
    assert!(guarded.trim() > 900_000);
    assert_eq!(guarded.stats().mapped, 0);
}

fn large_blocks_stay_lazy() {
    let before = super::common::process::resident();
    for side in [Side::After, Side::Before] {
        let guarded = guarded(side, 0);
        let _block = guarded.allocate(Request::zeroed(1 << 30)).unwrap();
        let _other = guarded.allocate(Request::bytes((1 << 30) + 1)).unwrap();
    }
    assert!(super::common::process::resident() < before + 2 * huge());
}

/// Where no page can be made inaccessible, nothing is served unguarded, and what was freed is unmapped at once.
fn a_system_that_refuses() {
    for keep in [0, 1 << 20] {
        let guarded = guarded(Side::After, keep);
        fail_after(&[Call::Protect], 0, i64::MAX / 2);
        let error = Held::new(&*guarded, Request::bytes(1000)).map(Held::leak).unwrap_err();
        fail_after(&[], 0, 0);
        assert_eq!((error.asked, guarded.stats().mapped), (1000, 0));
        let blocks: Vec<_> = (0..50).map(|seed| Held::filled(&*guarded, 10_000, seed)).collect();
        fail_after(&[Call::Protect], 3, i64::MAX / 2);
        drop(blocks);
        fail_after(&[], 0, 0);
        assert!(guarded.stats().mapped < 100_000);
    }
}

fn freed_memory_serves_other_sizes() {
    let guarded = guarded(Side::After, 200 << 20);
    limits::set(libc::RLIMIT_AS, super::common::process::address_space() + (300 << 20));
    limits::freed_memory_serves_other_sizes(&*guarded);
}

/// Blocks beyond the system's limit of mappings have no guard, and are served all the same; canaries stay.
fn beyond_the_limit_of_mappings_blocks_are_unguarded() {
    let limit = mapping_limit().unwrap_or(usize::MAX);
    if limit > 300_000 {
        return; // this would take too much memory
    }
    for side in [Side::After, Side::Before] {
        let guarded = guarded(side, 0);
        let count = limit / 2 + 2000;
        let blocks: Vec<_> = (0..count).map(|n| Held::filled(&*guarded, 24 + n % 7, n as u64)).collect();
        assert!(blocks.iter().all(|block| block.is_known() == Some(true)));
        assert!(std::thread::spawn(|| 1).join().is_ok(), "what else the process maps");
        dies(|| write(if side == Side::After { blocks[0].address() + page_size() } else { blocks[0].address() - 1 }));
        assert_eq!(guarded.check(), []);
        drop(blocks);
        let again = Held::filled(&*guarded, 1000, 1);
        dies(|| write(if side == Side::After { again.address() + page_size() } else { again.address() - 1 }));
    }
}

/// Small overruns that alignment leaves room for are found, once each.
#[test]
fn canaries_are_found() {
    for side in [Side::After, Side::Before] {
        let guarded = guarded(side, 0);
        for size in [1, 63, 65, 1000, 5001, 100_001, 3 * huge() + 1] {
            let block = Held::filled(&*guarded, size, 1);
            let (address, asked) = (block.address(), size);
            assert_eq!(guarded.check(), []);
            for at in [address + size, (address + size).next_multiple_of(64) - 1] {
                write(at);
                assert_eq!(guarded.check(), [Overrun { address, asked, at }]);
                assert_eq!(guarded.check(), [], "it is told once");
            }
            write(address + size);
            block.give_back();
            assert_eq!(guarded.check(), [Overrun { address, asked, at: address + size }]);
            assert_eq!(guarded.check(), []);
        }
    }
}

#[test]
fn canaries_before_a_block_are_found() {
    let guarded = guarded(Side::After, 0);
    let block = Held::filled(&*guarded, 1000, 1);
    let at = block.address() - 1;
    write(at);
    write(at - 500);
    assert_eq!(guarded.check(), [Overrun { address: block.address(), asked: 1000, at }]);
}
