//! Regions that nest, overlap and end in any order count their own blocks.

#![allow(unsafe_code)] // Safety: blocks are freed by the pool that allocated them.

use firsttouch::adaptors::{Options, Pool, Tracked};
use firsttouch::allocator::{Allocator, Request};
use firsttouch_trace::profile::{self, Region};
use std::sync::{Arc, Mutex};

/// Regions are the process's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

const KIB: usize = 1 << 10;

fn counts(region: &Region) -> (u64, usize, usize) {
    let (counts, _) = region.snapshot();
    (counts.allocated, counts.live, counts.peak)
}

#[test]
fn a_region_counts_from_its_opening_to_its_end() {
    let _alone = ALONE.lock();
    profile::on_alloc(1 << 20, 64 * KIB); // no region is open
    let outer = Region::open(false, || ());
    profile::on_alloc(2 << 20, 64 * KIB);
    let inner = Region::open(false, || ());
    profile::on_alloc(3 << 20, 32 * KIB);
    profile::on_alloc(4 << 20, 8 * KIB); // too small
    profile::on_free(1 << 20);
    profile::on_free(2 << 20);
    profile::on_free(4 << 20);
    assert_eq!(counts(&outer), (96 << 10, 32 * KIB, 96 * KIB));
    assert_eq!(counts(&inner), (32 << 10, 32 * KIB, 32 * KIB));
    drop(outer);
    let later = Region::open(false, || unreachable!("a region is open"));
    profile::on_free(3 << 20);
    assert_eq!(counts(&later), (0, 0, 0));
    assert_eq!(counts(&inner), (32 << 10, 0, 32 * KIB));
    assert!(profile::is_open());
    drop((inner, later));
    assert!(!profile::is_open());
}

#[test]
fn a_block_that_changes_its_size_is_the_same_block() {
    let _alone = ALONE.lock();
    let region = Region::open(false, || ());
    profile::on_alloc(1 << 20, 64 * KIB);
    for (from, to, size) in [(1, 2, 128), (2, 2, 32), (2, 3, 4), (3, 4, 64)] {
        let before = profile::on_resize_begin(from << 20);
        profile::on_resize_end(before, to << 20, size * KIB);
    }
    let (found, _) = region.close();
    assert_eq!((found.blocks, found.live_blocks), (2, 1)); // it was too small in between
    assert_eq!((found.allocated, found.live), ((64 + 64 + 64) << 10, 64 * KIB));
    assert_eq!((found.peak, found.largest), (128 * KIB, 128 * KIB));
}

#[test]
fn threads_count_for_those_who_count_them() {
    let _alone = ALONE.lock();
    let (all, own) = (Region::open(false, || ()), Region::open(true, || ()));
    profile::on_alloc(1 << 20, 64 * KIB);
    std::thread::spawn(|| {
        profile::on_alloc(2 << 20, 32 * KIB);
        profile::on_free(1 << 20);
    })
    .join()
    .unwrap();
    assert_eq!(counts(&all), (96 << 10, 32 * KIB, 96 * KIB));
    assert_eq!(counts(&own), (64 << 10, 0, 64 * KIB));
}

#[test]
fn pools_tell_what_they_recycled_whatever_stands_on_them() {
    let _alone = ALONE.lock();
    let pool: Arc<dyn Allocator> = Pool::new(Options::default());
    let stack: Arc<dyn Allocator> = Tracked::new(pool.clone(), None);
    let region = Region::open(false, || ());
    let size = 64 * KIB - 64; // its span has 64 KiB, wherever in it the block begins
    for allocator in [&pool, &stack, &pool] {
        profile::on_request(Some(allocator), size);
        let block = allocator.allocate(Request::bytes(size)).unwrap();
        // SAFETY: it was just allocated.
        unsafe { allocator.deallocate(block.address) };
    }
    let recycling = region.snapshot().1.unwrap();
    assert_eq!((recycling.first_touched, recycling.recycled, recycling.recycled_blocks), (64 << 10, 128 << 10, 2));
    profile::on_request(None, 64 * KIB);
    assert_eq!(region.snapshot().1, None);
}
