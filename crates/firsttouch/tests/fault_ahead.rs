//! Fault-ahead: large fresh blocks are populated ahead of a program that walks through them, and of no other.

#![allow(unsafe_code)] // Safety: blocks are used within their bounds, and freed once.

mod common;

use common::alone::alone as in_a_process;
use common::cgroup::Cgroup;
use firsttouch::adaptors::{Limited, Options, Pool};
use firsttouch::fault_ahead::populated_bytes;
use firsttouch::os::{self, Call, fail_after};
use firsttouch::sources::Pages;
use firsttouch::{Allocator, Request};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
/// Larger huge pages, as base pages of 16 KiB go with, are left to the program.
const LARGEST: usize = 16 * MIB;
/// Large enough on huge pages, too.
const SIZE: usize = 256 * MIB;

/// The tests count what the whole process populates. A processor counts as idle, whatever the machine does.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    fail_after(&[Call::RunnableThreads], 0, i64::MAX);
    turn
}

/// A pool and a source of pages.
fn on(huge: bool) -> [Arc<dyn Allocator>; 2] {
    let options = Options { huge, fault_ahead: true, ..Options::default() };
    [Pool::new(options), Pages::with_fault_ahead(huge, true)]
}

fn helped() -> impl Iterator<Item = Arc<dyn Allocator>> {
    [true, false].into_iter().flat_map(on)
}

fn take(pool: &dyn Allocator, size: usize, zeroed: bool) -> NonNull<u8> {
    pool.allocate(Request::bytes(size).with_zeroed(zeroed)).unwrap().address
}

/// Writes a byte to each of a block's pages in turn, slowly enough to be followed.
fn walk(block: NonNull<u8>, pages: impl Iterator<Item = usize>) {
    for (count, page) in pages.enumerate() {
        // SAFETY: the page is one of the block's.
        unsafe { block.add(page * os::page_size()).write(page as u8 | 1) };
        if count % 512 == 511 {
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}

fn eventually(true_now: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if true_now() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// Walks through a zeroed block, and checks what is in it afterwards; whether it was met ahead.
///
/// Half way the walk waits for the helper, which comes late where other programs want every processor.
fn walk_met_ahead(pool: &dyn Allocator, backward: bool) -> bool {
    let size = SIZE;
    let block = take(pool, size, true);
    let before = populated_bytes();
    let pages = size / os::page_size();
    let order =
        |pages_in: std::ops::Range<usize>| pages_in.map(move |page| if backward { pages - 1 - page } else { page });
    walk(block, order(0..pages / 2));
    let met = eventually(|| populated_bytes() - before > 16 * MIB as u64);
    walk(block, order(pages / 2..pages));
    for page in 0..pages {
        // SAFETY: the page is one of the block's.
        let (first, second) = unsafe {
            let at = block.add(page * os::page_size());
            (at.read(), at.add(1).read())
        };
        assert_eq!((first, second), (page as u8 | 1, 0));
    }
    // SAFETY: the block came from this pool.
    unsafe { pool.deallocate(block) };
    pool.trim();
    met
}

#[test]
fn a_walk_is_met_ahead_from_either_end_and_nothing_is_lost() {
    if os::processors() < 2 {
        return;
    }
    let _turn = alone();
    let too_large = os::huge_page_size().is_some_and(|size| size > LARGEST);
    for pool in [true, false].into_iter().filter(|huge| !(*huge && too_large)).flat_map(on) {
        for backward in [false, true] {
            // A block in which the helper has seen nothing for a second is given up.
            let met = (0..3).any(|_| walk_met_ahead(&*pool, backward));
            assert!(met, "backward {backward}");
        }
        assert!(pool.stats().populated_ahead_bytes > 0);
    }
}

#[test]
fn adaptors_tell_what_their_pages_populate() {
    if os::processors() < 2 {
        return;
    }
    let _turn = alone();
    let limited = Limited::new(Pages::with_fault_ahead(false, true), usize::MAX);
    let pool = Pool::over(limited.clone(), Options::default());
    assert!((0..3).any(|_| walk_met_ahead(&*pool, false)));
    for allocator in [&*limited, &*pool] {
        assert_eq!(allocator.stats().populated_ahead_bytes, populated_bytes());
    }
}

#[test]
fn what_is_touched_here_and_there_stays_sparse() {
    let _turn = alone();
    for pool in helped() {
        let before = populated_bytes();
        let blocks: Vec<_> = (0..100).map(|_| take(&*pool, SIZE, true)).collect();
        let last = SIZE / os::page_size() - 1;
        for &block in &blocks {
            walk(block, [0, last / 3, last / 3 * 2, last].into_iter());
        }
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(populated_bytes() - before, 0);
        for block in blocks {
            // SAFETY: the block came from this pool.
            unsafe { pool.deallocate(block) };
        }
    }
}

/// The bytes that the helper populates within a quarter of a second of `touch` going through a block in steps of `stride`.
fn populated_by(pool: &dyn Allocator, stride: usize, touch: impl Fn(NonNull<u8>)) -> u64 {
    let block = take(pool, SIZE, true);
    let before = populated_bytes();
    for at in (0..SIZE).step_by(stride) {
        // SAFETY: it lies in the block.
        touch(unsafe { block.add(at) });
        if at % (2 * MIB) == 0 {
            std::thread::sleep(Duration::from_micros(300));
        }
    }
    std::thread::sleep(Duration::from_millis(250));
    let populated = populated_bytes() - before;
    // SAFETY: the block came from this pool.
    unsafe { pool.deallocate(block) };
    pool.trim();
    populated
}

#[test]
fn a_column_of_wide_rows_stays_sparse() {
    let _turn = alone();
    if os::system_file("/sys/kernel/mm/transparent_hugepage/enabled").is_some_and(|text| text.contains("[always]")) {
        return; // a byte makes a whole huge page real, on any memory
    }
    for pool in on(false) {
        // With small pages some of every granule, the first among them.
        for stride in [4 * os::page_size(), 16 * os::page_size()] {
            // SAFETY: it lies in the block.
            assert_eq!(populated_by(&*pool, stride, |at| unsafe { at.write(1) }), 0, "rows of {stride} bytes");
        }
    }
}

/// Where huge pages are `always` made, the first byte makes many base pages real.
#[test]
fn a_first_touch_populates_nothing() {
    let _turn = alone();
    for pool in helped() {
        // SAFETY: it lies in the block.
        assert_eq!(populated_by(&*pool, SIZE, |at| unsafe { at.write(1) }), 0);
    }
}

#[test]
fn a_block_that_is_only_read_takes_no_memory() {
    let _turn = alone();
    for pool in helped() {
        // SAFETY: it lies in the block, which is zeroed.
        let populated = populated_by(&*pool, os::page_size(), |at| assert_eq!(unsafe { at.read_volatile() }, 0));
        assert_eq!(populated, 0);
    }
}

#[test]
fn a_container_of_less_than_two_processors_goes_without() {
    in_a_process("a_container_of_less_than_two_processors_goes_without", || {
        let Some(group) = Cgroup::enter_new("cpu").filter(|_| os::processors() >= 2) else { return };
        let _turn = alone();
        let [pool, _] = on(false);
        // SAFETY: it lies in the block.
        let populated = || populated_by(&*pool, os::page_size(), |at| unsafe { at.write(1) });
        assert!((0..5).any(|_| populated() > 0), "without a quota");
        std::thread::sleep(Duration::from_millis(300)); // the thread ends, and asks anew when it starts
        group.set_quota(1.5);
        assert_eq!([populated(), populated(), populated()], [0; 3]);
    });
}

#[test]
fn where_every_processor_is_busy_the_program_goes_without() {
    in_a_process("where_every_processor_is_busy_the_program_goes_without", || {
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..os::processors() {
                scope.spawn(|| {
                    while !ended.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let populated: u64 = on(false)
                .iter()
                .map(|pool| {
                    populated_by(&**pool, os::page_size(), |at| {
                        // SAFETY: it lies in the block.
                        unsafe { at.write(1) }
                    })
                })
                .sum();
            ended.store(true, Relaxed);
            assert_eq!(populated, 0);
        });
    });
}

/// A helper inherits the processors of the thread that starts it, so one started here could only take time from it.
#[test]
fn a_thread_pinned_to_one_processor_starts_no_helper() {
    in_a_process("a_thread_pinned_to_one_processor_starts_no_helper", || {
        let _turn = alone();
        let all = os::thread_processors().unwrap();
        let first = all.iter().next().unwrap();
        let [pool, _] = on(false);
        // SAFETY: it lies in the block.
        let populated = || populated_by(&*pool, os::page_size(), |at| unsafe { at.write(1) });
        os::run_on_processors(&os::Processors::one(first)).unwrap();
        assert_eq!((populated(), helpers()), (0, 0));
        os::run_on_processors(&all).unwrap();
        assert!(all.len() < 2 || (0..5).any(|_| populated() > 0), "with the processors it had before");
    });
}

/// The threads of this process that populate blocks.
fn helpers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "fault-ahead").count()
}

#[test]
fn nothing_is_populated_without_the_option() {
    let _turn = alone();
    let pool = Pool::new(Options::default());
    let block = take(&*pool, SIZE, false);
    let before = populated_bytes();
    walk(block, 0..SIZE / os::page_size());
    assert_eq!(populated_bytes() - before, 0);
    // SAFETY: the block came from this pool.
    unsafe { pool.deallocate(block) };
}

#[test]
fn a_block_that_is_freed_or_shrunk_is_left_alone() {
    let _turn = alone();
    for pool in helped() {
        for turn in 0..60 {
            let block = take(&*pool, SIZE, turn % 2 == 0);
            let above = take(&*pool, SIZE, false); // keeps the memory below it mapped
            walk(block, 0..(1536 + turn * 100) * 4096 / os::page_size());
            if turn % 3 == 0 {
                // SAFETY: the block came from this pool, and only shrinks.
                assert!(unsafe { pool.resize_in_place(block, 4 * MIB) });
            } else {
                // SAFETY: the block came from this pool.
                unsafe { pool.deallocate(block) };
            }
            pool.trim();
            let populated = populated_bytes();
            std::thread::sleep(Duration::from_millis(3));
            assert_eq!(populated_bytes(), populated);
            if turn % 3 == 0 {
                // SAFETY: the block came from this pool.
                unsafe { pool.deallocate(block) };
            }
            // SAFETY: as above.
            unsafe { pool.deallocate(above) };
            pool.trim();
        }
    }
    let resident = os::resident();
    assert!(eventually(|| os::resident() < 48 * MIB), "{resident} bytes resident");
}

#[test]
fn forks_in_the_middle_of_a_walk() {
    let _turn = alone();
    for pool in helped() {
        let block = take(&*pool, SIZE, true);
        let pages = SIZE / os::page_size();
        for part in 0..8 {
            walk(block, part * pages / 8..(part + 1) * pages / 8);
            // SAFETY: the child uses the pool, and ends without running the parent's handlers.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let (other, before) = (take(&*pool, SIZE, true), populated_bytes());
                std::thread::sleep(Duration::from_millis(50));
                let populated = populated_bytes() - before; // of the block that the parent walks through
                walk(other, 0..SIZE / os::page_size());
                // SAFETY: as above.
                unsafe {
                    pool.deallocate(other);
                    libc::_exit(i32::from(populated > 0))
                };
            }
            let mut status = 1;
            // SAFETY: the child was made above.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!(status, 0);
        }
        // SAFETY: the block came from this pool.
        unsafe { pool.deallocate(block) };
    }
}

#[test]
fn a_child_begins_with_an_empty_list() {
    let _turn = alone();
    let [pool, _] = on(false);
    let blocks: Vec<_> = (0..8).map(|_| take(&*pool, 16 * MIB, true)).collect();
    // SAFETY: the child uses the pool, and ends without running the parent's handlers.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let met = walk_met_ahead(&*pool, false);
        // SAFETY: as above.
        unsafe { libc::_exit(i32::from(!met)) };
    }
    let mut status = 1;
    // SAFETY: the child was made above.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    for block in blocks {
        // SAFETY: the block came from this pool.
        unsafe { pool.deallocate(block) };
    }
}

#[test]
fn many_threads_at_once() {
    let _turn = alone();
    let cases = [(true, 3, 192), (false, 20, 16)];
    for (pool, turns, least) in
        cases.into_iter().flat_map(|(huge, turns, least)| on(huge).map(|pool| (pool, turns, least)))
    {
        std::thread::scope(|scope| {
            for seed in 0..4u8 {
                let pool = &*pool;
                scope.spawn(move || {
                    for turn in 0..turns {
                        let size = (least + turn * 2) * MIB;
                        let block = take(pool, size, true);
                        for at in (0..size).step_by(4096) {
                            // SAFETY: it lies in the block, which is this thread's.
                            unsafe {
                                assert_eq!(block.add(at).read(), 0);
                                block.add(at).write(seed + 1);
                            }
                        }
                        for at in (0..size).step_by(4096) {
                            // SAFETY: as above.
                            assert_eq!(unsafe { block.add(at).read() }, seed + 1);
                        }
                        // SAFETY: the block came from this pool.
                        unsafe { pool.deallocate(block) };
                    }
                });
            }
        });
    }
}
