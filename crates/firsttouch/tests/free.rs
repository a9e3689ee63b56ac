//! Law 5: a pool's free makes no system call and allocates nothing; nor does the background purger allocate.

#![allow(unsafe_code)] // Safety: the counting allocator passes everything on to the system's.

mod common;

use common::alone::alone;
use common::held::Held;
#[cfg(unix)]
use common::process::{threads_called, within};
use firsttouch::Allocator;
use firsttouch::adaptors::{Filled, Limited, Options, Pool};
use firsttouch::os::{Call, fail_after, injected};
use firsttouch::scratch::Buffer;
use firsttouch::sources::{Guarded, GuardedOptions, Pages};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
#[cfg(unix)]
use std::time::Duration;

/// The system's allocator, counting.
struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator keeps the promises.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        COUNT.fetch_add(1, SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

const CALLS: [Call; 7] =
    [Call::Map, Call::Unmap, Call::Discard, Call::AdviseHuge, Call::Spawn, Call::Resident, Call::Protect];
const FOREVER: Options = Options { decay: None, max_idle: Some(usize::MAX), huge: true, arrays: true };

/// More blocks than a processor remembers, of all sizes, next to each other and apart.
fn blocks(pool: &dyn Allocator) -> Vec<Held<'_>> {
    let mut blocks: Vec<_> = (0..120).map(|n| Held::filled(pool, 5_000 + (30_000 << (n % 8)), n)).collect();
    for n in 0..60 {
        blocks.swap(n, 119 - n * 7 % 120);
    }
    blocks
}

/// Frees many blocks; allocations by that, and whether the system was called.
fn frees(allocator: &dyn Allocator) -> (usize, bool) {
    let mut blocks = blocks(allocator);
    let last = blocks.len();
    fail_after(&CALLS, 0, 1);
    let before = COUNT.load(SeqCst);
    blocks.drain(..last).for_each(drop);
    let after = COUNT.load(SeqCst);
    // Where the failure that was laid out is still there, no call of the system's came by.
    let called = !CALLS.iter().any(|&call| injected(call));
    fail_after(&[], 0, 0);
    assert_eq!(allocator.stats().blocks, 0);
    (after - before, called)
}

#[test]
fn a_free_calls_nobody() {
    alone("a_free_calls_nobody", || {
        let pools: [Arc<dyn Allocator>; 5] = [
            Pool::new(FOREVER),
            Limited::new(Pool::new(FOREVER), 1 << 40),
            Filled::new(Pool::new(FOREVER), Some(1), Some(2)),
            Pool::over(Limited::new(Pages::new(true), 1 << 40), FOREVER),
            Buffer::growing(Pool::new(FOREVER), 1 << 20),
        ];
        for pool in pools {
            for round in 0..3 {
                assert_eq!(frees(&*pool), (0, false), "{} in round {round}", pool.expression());
            }
        }
    });
}

/// What is guarded has to call the system, but allocates nothing.
#[test]
fn a_guarded_free_allocates_nothing() {
    alone("a_guarded_free_allocates_nothing", || {
        for keep in [0, 1 << 20, 1 << 30] {
            let guarded = Guarded::new(GuardedOptions { keep, ..Default::default() });
            for round in 0..3 {
                assert_eq!(frees(&*guarded), (0, true), "{keep} bytes kept, round {round}");
            }
        }
    });
}

#[test]
#[cfg(unix)] // which tells the names of threads
fn the_purger_allocates_nothing() {
    alone("the_purger_allocates_nothing", || {
        let decay = Some(Duration::from_millis(200));
        let pool = Pool::new(Options { decay, max_idle: Some(40 << 20), ..Options::default() });
        let living = Held::filled(&*pool, 3 << 20, 1);
        drop(blocks(&*pool));
        within("it runs", || threads_called("firsttouch") == 1);
        let before = COUNT.load(SeqCst);
        within("idle memory is gone", || pool.stats().idle < 8 << 20);
        std::thread::sleep(Duration::from_millis(300)); // and the next ticks
        assert_eq!(before, COUNT.load(SeqCst));
        living.give_back();
    });
}
