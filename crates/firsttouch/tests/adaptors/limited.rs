//! Budgets are exact to the byte, between threads, when nested, and after failures.

use super::common::alone::alone;
#[cfg(target_os = "linux")]
use super::common::forked::fork;
use super::common::held::Held;
#[cfg(target_os = "linux")]
use super::common::{limits, process::address_space};
#[cfg(target_os = "linux")]
use firsttouch::adaptors::{Accounts, Budget};
use firsttouch::adaptors::{Filled, Limited, Options, Pool, is_sampled};
use firsttouch::allocator::Limit;
#[cfg(target_os = "linux")]
use firsttouch::os;
use firsttouch::sources::{Calloc, Malloc, Pages};
use firsttouch::{AllocError, Allocator, Request, failure};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::scope;

const BUDGET: usize = 1_000_000;

fn upstreams() -> [Arc<dyn Allocator>; 4] {
    [Pool::new(Options::default()), Malloc::new(), Calloc::new(), Pages::new(true)]
}

fn refused(allocator: &dyn Allocator, size: usize) -> AllocError {
    Held::new(allocator, Request::bytes(size)).map(Held::leak).unwrap_err()
}

#[test]
fn to_the_byte() {
    for upstream in upstreams() {
        let limited = Limited::new(upstream, BUDGET);
        let first = Held::filled(&*limited, 400_001, 1);
        assert_eq!(
            refused(&*limited, BUDGET - 400_000),
            AllocError::new(BUDGET - 400_000, Limit::Budget { allowed: BUDGET, used: 400_001 })
        );
        let second = Held::filled(&*limited, BUDGET - 400_001, 2);
        assert_eq!(limited.used(), BUDGET);
        refused(&*limited, 1);
        first.give_back();
        assert_eq!(limited.used(), BUDGET - 400_001);
        second.give_back();
        assert_eq!(limited.used(), 0);
        Held::filled(&*limited, BUDGET, 3).give_back();
        refused(&*limited, BUDGET + 1);
    }
}

/// What an interpreter may have beyond the budget is little, whatever it asks for. There, blocks may still become smaller.
#[test]
fn an_overdraft_is_no_hole() {
    let limited = Limited::new(Pool::new(Options::default()), BUDGET);
    let mut all = Held::filled(&*limited, BUDGET, 1);
    let overdrawn = |size| Held::new(&*limited, Request::bytes(size).of_interpreter());
    let _little = overdrawn(100_000).unwrap();
    assert!(matches!(overdrawn(1 << 59).map(Held::leak).unwrap_err().limit, Limit::Budget { .. }));
    let more: Vec<_> = std::iter::from_fn(|| overdrawn(100_000).ok()).collect();
    all.resize(BUDGET - 1).unwrap();
    assert_eq!(limited.used(), BUDGET - 1 + (1 + more.len()) * 100_000);
    assert!(overdrawn(100_000).is_err());
}

#[test]
fn the_error_says_all() {
    alone("limited::the_error_says_all", || {
        let limited = Limited::new(Pool::new(Options::default()), 1 << 20);
        let _block = Held::filled(&*limited, 1_000_000, 1);
        let error = refused(&*limited, 50_000);
        assert_eq!(
            error.to_string(),
            "cannot allocate 48.83 KiB: limited() allows 1 MiB, of which 976.56 KiB are in use (47.44 KiB are left)"
        );
        assert_eq!((failure::last(), error.limit_name()), (Some(error), "limited"));
        assert!(limited.expression().starts_with("limited(pool(") && limited.expression().ends_with("), '1 MiB')"));
    });
}

#[test]
fn resizes_keep_it_exact() {
    for upstream in upstreams() {
        let limited = Limited::new(upstream, BUDGET);
        let mut block = Held::filled(&*limited, 600_000, 1);
        for size in [700_000, BUDGET, 1, 300_000, 299_999, 65, BUDGET - 1, 500_000] {
            // More than half: old and new together would pass the budget, but they are one block.
            block.resize(size).unwrap();
            assert_eq!(limited.used(), size);
        }
        for size in [BUDGET + 1, 2 * BUDGET, usize::MAX, 1 << 47] {
            assert!(block.resize(size).is_err());
            assert_eq!((limited.used(), block.asked), (500_000, 500_000));
        }
        block.give_back();
        assert_eq!(limited.used(), 0);
    }
}

/// Two budgets on one: each holds, and so does the one they share. What that refuses costs nothing of theirs.
#[test]
fn budgets_nest() {
    let shared = Limited::new(Pool::new(Options::default()), 1_000_000);
    let (left, right) = (Limited::new(shared.clone(), 700_000), Limited::new(shared.clone(), 700_000));
    let block = Held::filled(&*left, 600_000, 1);
    assert_eq!(refused(&*left, 100_001).limit, Limit::Budget { allowed: 700_000, used: 600_000 });
    assert_eq!(refused(&*right, 500_000).limit, Limit::Budget { allowed: 1_000_000, used: 600_000 });
    assert_eq!(right.used(), 0);
    let mut other = Held::filled(&*right, 300_000, 2);
    assert_eq!(other.resize(400_001).unwrap_err().limit, Limit::Budget { allowed: 1_000_000, used: 900_000 });
    assert_eq!((right.used(), shared.used()), (300_000, 900_000));
    other.resize(400_000).unwrap();
    assert_eq!((left.used(), right.used(), shared.used()), (600_000, 400_000, 1_000_000));
    drop((block, other));
    assert_eq!((left.used(), right.used(), shared.used()), (0, 0, 0));
}

#[test]
fn no_budget_serves_nothing() {
    let limited = Limited::new(Malloc::new(), 0);
    assert_eq!(refused(&*limited, 1).limit, Limit::Budget { allowed: 0, used: 0 });
    assert_eq!(refused(&*limited, 0).asked, 1);
    assert_eq!((limited.stats().failures, limited.stats().allocations), (2, 0));
}

/// Many threads at the edge of the budget: it is never passed, and nothing of it is lost.
#[test]
fn threads_share_it() {
    // Less than one thread asks for: it is refused something even where the machine runs the threads one by one.
    const SHARED: usize = 25_000;
    let limited = Limited::new(Filled::new(Malloc::new(), Some(1), None), SHARED);
    let (held, served, failed) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    scope(|threads| {
        for seed in 0..4usize {
            let (limited, held, served, failed) = (&limited, &held, &served, &failed);
            threads.spawn(move || {
                let mut kept: Vec<Held> = Vec::new();
                for round in 0..6000 {
                    let size = 1 + (round * 7919 + seed * 104_729) % 9000;
                    if let Ok(block) = Held::new(&**limited, Request::bytes(size)) {
                        // Counted after it was had and before it goes: never more than the allocator counts.
                        assert!(held.fetch_add(size, Relaxed) + size <= SHARED);
                        served.fetch_add(1, Relaxed);
                        kept.push(block);
                    } else {
                        failed.fetch_add(1, Relaxed);
                    }
                    if let Some(block) = kept.first_mut().filter(|_| round % 3 == 0) {
                        held.fetch_sub(block.asked, Relaxed);
                        let _ = block.resize(size / 2 + 1);
                        held.fetch_add(block.asked, Relaxed);
                    }
                    if kept.len() > 8 {
                        held.fetch_sub(kept[round % 8].asked, Relaxed);
                        kept.swap_remove(round % 8);
                    }
                }
                held.fetch_sub(kept.iter().map(|block| block.asked).sum(), Relaxed);
            });
        }
    });
    assert_eq!((limited.used(), held.into_inner()), (0, 0));
    assert!(served.into_inner() > 1000 && failed.into_inner() > 100);
    Held::filled(&*limited, SHARED, 1).give_back();
}

/// Whoever keeps blocks uses all of them: 36,864 bytes stand behind each block of 33,000.
#[test]
fn what_an_upstream_adds_is_not_handed_on() {
    for upstream in upstreams() {
        let limited = Limited::new(upstream, 4 * 33_000);
        let pool = Pool::over(limited.clone(), Options { decay: None, ..Options::default() });
        let first: Vec<_> = (0..4).map(|seed| Held::filled(&*pool, 33_000, seed)).collect();
        assert!(first.iter().all(|block| block.usable() == 33_000));
        first.into_iter().for_each(Held::give_back);
        let more: Vec<_> = (0..3).map(|seed| Held::filled(&*pool, 36_864, seed)).collect();
        assert!(limited.used() >= 3 * 36_864);
        refused(&*pool, 36_864);
        more.into_iter().for_each(Held::give_back);
    }
}

/// A budget that the processes share which open the file.
#[cfg(target_os = "linux")]
fn of_a_run(file: &std::fs::File, budget: impl Into<Budget>) -> Arc<Limited> {
    let limited = Limited::new(Pool::new(Options::default()), budget);
    limited.join(Accounts::open(std::process::id(), os::file_number(file)).unwrap());
    limited
}

/// A run has one budget: each block counts once, whoever has a copy of it, and what a process held that is gone is free.
#[test]
#[cfg(target_os = "linux")]
fn processes_share_it() {
    alone("limited::processes_share_it", || {
        let file = Accounts::create().unwrap();
        let limited = of_a_run(&file, BUDGET);
        let mut inherited = Held::filled(&*limited, 400_000, 1);
        let ended = fork(|| {
            assert_eq!(limited.used(), 400_000);
            Held::filled(&*limited, 500_000, 2).leak();
            refused(&*limited, 100_001);
            let reason = failure::last_reason().unwrap();
            assert!(reason.contains("; other processes of the run hold 390.63 KiB"), "{reason}");
            inherited.resize(100_000).unwrap(); // it counts beside the parent's
            assert_eq!(limited.used(), BUDGET);
            refused(&*limited, 1);
        });
        ended.join();
        assert_eq!(limited.used(), BUDGET);
        let all = Held::filled(&*limited, 600_000, 3); // the child is gone
        assert_eq!(limited.used(), BUDGET);
        refused(&*limited, 1);
        drop((all, inherited));
        assert_eq!(limited.used(), 0);
    });
}

/// A process of another user may be hidden from this one, and lives.
#[test]
#[cfg(target_os = "linux")]
#[allow(unsafe_code)] // see below
fn what_hidden_processes_hold_is_not_free() {
    alone("limited::what_hidden_processes_hold_is_not_free", || {
        let file = Accounts::create().unwrap();
        let limited = of_a_run(&file, BUDGET);
        let held = Held::filled(&*limited, 400_000, 1);
        let child = fork(|| {
            let (none, proc, private) = (std::ptr::null(), c"proc".as_ptr(), libc::MS_REC | libc::MS_PRIVATE);
            // SAFETY: the paths are C strings. Only this child sees the mount, and is another user from then on.
            let hides = unsafe {
                libc::unshare(libc::CLONE_NEWNS) == 0
                    && libc::mount(none, c"/".as_ptr(), none, private, none.cast()) == 0
                    && libc::mount(proc, c"/proc".as_ptr(), proc, 0, c"hidepid=2,gid=65534".as_ptr().cast()) == 0
                    && libc::setresuid(65534, 65534, 65534) == 0
            };
            if hides {
                refused(&*limited, BUDGET - 399_999);
            }
        });
        child.join();
        drop(held);
    });
}

/// What a fork copies is no part of the child's account, but of its address space.
#[test]
#[cfg(target_os = "linux")]
fn a_child_leaves_a_reserve_of_address_space() {
    alone("limited::a_child_leaves_a_reserve_of_address_space", || {
        let file = Accounts::create().unwrap();
        limits::set(libc::RLIMIT_AS, address_space() + (800 << 20));
        let limited = of_a_run(&file, Budget::auto(usize::MAX));
        let inherited = Held::filled(&*limited, 400 << 20, 1);
        let ended = fork(|| {
            while let Ok(block) = Held::new(&*limited, Request::bytes(4 << 20)) {
                block.leak();
            }
            let reason = failure::last_reason().unwrap();
            assert!(reason.contains("limited() allows"), "{reason}");
        });
        ended.join();
        drop(inherited);
    });
}

/// Where all accounts are taken, the bytes of a process count for itself: nobody would take them from the sum at its end.
#[test]
#[cfg(target_os = "linux")]
fn without_an_account_it_is_not_shared() {
    use std::os::unix::fs::FileExt;
    alone("limited::without_an_account_it_is_not_shared", || {
        let file = Accounts::create().unwrap();
        for account in 0..file.metadata().unwrap().len() >> 13 {
            file.write_all_at(&std::os::unix::process::parent_id().to_ne_bytes(), account << 13).unwrap();
        }
        let limited = of_a_run(&file, BUDGET);
        let held = Held::filled(&*limited, BUDGET, 1);
        refused(&*limited, 1);
        let mut sum = [1; 8];
        file.read_exact_at(&mut sum, 8).unwrap();
        assert_eq!((usize::from_ne_bytes(sum), limited.used()), (0, BUDGET));
        drop(held);
        assert_eq!(limited.used(), 0);
    });
}

/// The account of a process says what it holds, also after it was killed.
#[test]
#[cfg(target_os = "linux")]
fn an_account_outlives_its_process() {
    alone("limited::an_account_outlives_its_process", || {
        let file = Accounts::create().unwrap();
        let limited = of_a_run(&file, 64 << 20);
        let ended = fork(|| {
            Held::filled(&*limited, 1 << 20, 1).leak();
        });
        ended.join(); // no other process holds it any more
        let killed = fork(|| {
            for part in 0..3 {
                Held::filled(&*limited, 16 << 20, part).leak();
            }
            std::process::abort();
        });
        assert!(killed.signal().is_some());
        let mut account = vec![0; 8 << 10]; // the third one of a process, after this one's
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut account, 3 * (8 << 10)).unwrap();
        let text = String::from_utf8_lossy(&account);
        let wanted = "48 MiB, of 64 MiB that limited() allows\n  the largest living blocks:\n          48.0 MiB  an unknown line (3 blocks";
        assert!(text.contains(wanted), "{text}");
    });
}

#[test]
fn of_threads_that_make_few_blocks_a_sixteenth_is_sampled_too() {
    let sampled = || (0..3).filter(|_| is_sampled()).count();
    let all: usize = (0..800).map(|_| std::thread::spawn(sampled).join().unwrap()).sum();
    assert!((100..200).contains(&all), "{all} of 2,400");
}
