//! Law 12: programs that run under a limit run with firsttouch, too; and law 7: failures are errors that name the limit.

#![cfg(target_os = "linux")]

mod common;

use common::alone::each_alone;
use common::held::Held;
use common::limits::{become_nobody, lock_future, locked, set};
use common::process::address_space;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::allocator::Limit;
use firsttouch::os::page_size;
use firsttouch::sources::Pages;
use firsttouch::{Allocator, Request, failure};
use std::sync::Arc;
use std::time::Duration;

const MIB: usize = 1 << 20;

fn pool(huge: bool) -> Arc<Pool> {
    Pool::new(Options { decay: Some(Duration::from_millis(200)), huge, ..Options::default() })
}

each_alone! {
    what_just_fits_is_had address_space_is_reused_whatever_it_was_for a_pool_gives_back_before_it_fails
    the_limit_is_named_where_a_little_was_missing a_limit_on_data locked_memory_with_a_small_limit
    locked_memory_reads_zero
}

/// What just fits is had, though segments like to grow by more and huge pages are whole.
fn what_just_fits_is_had() {
    for huge in [false, true] {
        for size in [100_000, 1_100_000, 5 * MIB + 70_000, 33 * MIB] {
            let pool = pool(huge);
            // The records of its segments and the stack of its thread, which a plain program does not need.
            set(libc::RLIMIT_AS, address_space() + size.next_multiple_of(page_size()) + MIB);
            Held::filled(&*pool, size, 1).give_back();
            let error = Held::new(&*pool, Request::bytes(size * 2 + 2 * MIB)).err().unwrap();
            assert_eq!(error.limit_name(), "RLIMIT_AS", "{error}");
            assert_eq!(failure::last(), Some(error));
            Held::filled(&*pool, size, 2).give_back();
            assert_eq!(pool.stats().failures, 1);
            set(libc::RLIMIT_AS, 1 << 46);
        }
    }
}

/// Address space that small blocks once had serves large ones, whichever way it was given back.
fn address_space_is_reused_whatever_it_was_for() {
    let pool = Pool::new(Options { decay: None, ..Options::default() });
    let small: Vec<_> = (0..3200).map(|seed| Held::filled(&*pool, 64 << 10, seed)).collect();
    set(libc::RLIMIT_AS, address_space() + 20 * MIB);
    // They go one by one, as decay lets them.
    let (mut odd, mut even) = (Vec::new(), Vec::new());
    small.into_iter().enumerate().for_each(|(n, block)| if n % 2 == 0 { &mut even } else { &mut odd }.push(block));
    odd.into_iter().for_each(Held::give_back);
    pool.trim();
    even.into_iter().for_each(Held::give_back);
    pool.trim();
    Held::filled(&*pool, 150 * MIB, 1).give_back();
    // And back again.
    let small: Vec<_> = (0..2400).map(|seed| Held::filled(&*pool, 64 << 10, seed)).collect();
    drop(small);
    assert_eq!(pool.stats().failures, 0);
}

/// Before it fails, a pool gives back what it keeps; after it failed, all is as before.
fn a_pool_gives_back_before_it_fails() {
    let pool = Pool::new(Options { decay: None, ..Options::default() });
    set(libc::RLIMIT_AS, address_space() + 300 * MIB);
    for round in 0..10 {
        let blocks: Vec<_> = (0..20).map(|seed| Held::filled(&*pool, 12 * MIB, seed)).collect();
        drop(blocks);
        let large = Held::filled(&*pool, 250 * MIB, round);
        let error = Held::new(&*pool, Request::zeroed(100 * MIB)).err().unwrap();
        assert_eq!(error.limit_name(), "RLIMIT_AS", "{error}");
        assert!(error.to_string().contains("RLIMIT_AS"), "{error}");
        large.give_back();
    }
}

/// Also where only a little was missing.
fn the_limit_is_named_where_a_little_was_missing() {
    let pool = Pool::new(Options { decay: None, ..Options::default() });
    // Its span ends with its huge page, whatever its color: nothing that is mapped is left over.
    let _living = Held::filled(&*pool, 2 * MIB - 4096, 1);
    for (left, size) in [(2 * MIB, 2 * MIB + 70_000), (30 * MIB, 30 * MIB + 1)] {
        set(libc::RLIMIT_AS, address_space() + left);
        let error = Held::new(&*pool, Request::bytes(size)).err().unwrap();
        assert_eq!(error.limit_name(), "RLIMIT_AS", "{error}");
    }
}

fn a_limit_on_data() {
    let pool = pool(true);
    Held::filled(&*pool, 3 * MIB, 1).give_back();
    set(libc::RLIMIT_DATA, address_space() + 100 * MIB);
    let error = Held::new(&*pool, Request::bytes(900 * MIB)).err().unwrap();
    assert_eq!(error.limit_name(), "RLIMIT_DATA", "{error}");
    Held::filled(&*pool, 30 * MIB, 2).give_back();
}

/// mlockall: what the process may lock bounds what it has; idle memory is unlocked by unmapping it.
fn locked_memory_with_a_small_limit() {
    become_nobody();
    set(libc::RLIMIT_MEMLOCK, 8 * MIB);
    for huge in [false, true] {
        let pool = Pool::new(Options { decay: None, huge, ..Options::default() });
        lock_future();
        let blocks: Vec<_> = (0..4).map(|seed| Held::filled(&*pool, MIB / 2, seed)).collect();
        let error = Held::new(&*pool, Request::bytes(30 * MIB)).err().unwrap();
        assert!(matches!(error.limit, Limit::Locked(_)), "{error}");
        drop(blocks);
        // Of different sizes one after the other, more in all than may be locked at once.
        for round in 0..40 {
            Held::filled(&*pool, 100_000 + round * 130_000, round as u64).give_back();
            Held::zeros(&*pool, 40_000 + round * 90_000).give_back();
        }
        pool.trim();
        assert_eq!(pool.stats().idle, 0);
        assert!(locked() < 4 * MIB, "{} bytes are still locked", locked());
    }
}

/// Locked memory can't be emptied where it stands (EINVAL), and zero still means zero.
fn locked_memory_reads_zero() {
    set(libc::RLIMIT_MEMLOCK, usize::MAX);
    let pool = Pool::new(Options { decay: Some(Duration::ZERO), ..Options::default() });
    let pages = Pages::new(false);
    lock_future();
    // Pieces too small for a hole of their own, between live blocks.
    let mut blocks: Vec<_> = (0..20).map(|seed| Some(Held::filled(&*pool, 60_000, seed))).collect();
    blocks.iter_mut().step_by(2).for_each(|block| drop(block.take()));
    pool.trim();
    assert_eq!(pool.stats().idle, 0);
    drop(blocks);
    let allocators: [&dyn Allocator; 2] = [&*pool, &*pages];
    for allocator in allocators {
        let all_may_be_locked = Held::new(allocator, Request::bytes(100 * MIB)).is_ok();
        for size in [5000, 300_000, MIB, 2 * MIB, 9 * MIB, 40 * MIB] {
            if size > 2 * MIB && !all_may_be_locked {
                break;
            }
            let blocks: Vec<_> = (0..5).map(|seed| Held::filled(allocator, size / 3, seed)).collect();
            let middle = blocks.into_iter().nth(2);
            allocator.trim();
            Held::zeros(allocator, size).check_zero();
            drop(middle);
            Held::zeros(allocator, size / 2).check_zero();
        }
    }
}
