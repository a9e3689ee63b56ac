//! A failing operating system: the same program again and again, and each time another call fails, or all calls from one
//! on. Nothing is lost or corrupted, what could not be given back is never called zero, and the statistics add up.

mod common;

use common::alone::each_alone;
use common::held::{Held, check_apart};
#[cfg(unix)]
use common::process::threads_called;
use common::process::{settles, within};
use firsttouch::adaptors::{Filled, Limited, Options, Pool};
use firsttouch::allocator::find;
use firsttouch::heap::purger;
use firsttouch::os::{Call, fail_after, injected};
use firsttouch::scratch::Buffer;
use firsttouch::sources::{Calloc, Guarded, GuardedOptions, Pages};
use firsttouch::{Allocator, Request};
use std::sync::Arc;
use std::time::Duration;

each_alone! {
    mapping giving_back asking_and_everything_at_once under_adaptors nothing_can_be_given_back
    dropped_while_nothing_can_be_unmapped a_purger_that_cannot_be_started
}

const FOREVER: i64 = i64::MAX / 2;
const SIZES: [usize; 9] = [5_000, 70_000, 300_000, 4096, 1 << 20, 2_200_000, 40_000, 5 << 20, 700_000];

/// What a block is asked for in step `n`.
fn request(n: usize) -> Request {
    let size = SIZES[n % SIZES.len()] + n * 64;
    let request = if n % 3 == 1 { Request::zeroed(size) } else { Request::bytes(size) };
    request.aligned(if n % 7 == 3 { 1 << 16 } else { 64 }).unwrap()
}

/// Every way memory is taken, changed, and given back. Requests may fail; whatever lives is checked all the time.
fn program(allocator: &dyn Allocator) -> Vec<Held<'_>> {
    let mut blocks = Vec::new();
    for round in 0..2 {
        for n in 0..14 {
            match Held::new(allocator, request(round * 14 + n)) {
                Ok(mut block) => {
                    block.fill((round * 100 + n) as u64);
                    blocks.push(block);
                }
                Err(error) => assert_eq!(error.asked, request(round * 14 + n).size()),
            }
        }
        for (n, block) in blocks.iter_mut().enumerate().filter(|(n, _)| n % 4 == round) {
            let _ = block.resize(SIZES[(n + 3) % SIZES.len()]);
            let _ = block.resize(SIZES[(n + 5) % SIZES.len()] / 2);
        }
        let mut index = round;
        blocks.retain(|block| {
            block.check();
            index += 1;
            index % 3 == 0
        });
        allocator.trim();
    }
    blocks.iter().for_each(Held::check);
    blocks
}

/// The system works again: so does everything else.
fn recovers(allocator: &dyn Allocator, blocks: Vec<Held<'_>>) {
    check_apart(&blocks);
    let zeros: Vec<_> = SIZES.iter().map(|&size| Held::zeros(allocator, size)).collect();
    zeros.iter().for_each(Held::check_zero);
    blocks.into_iter().for_each(Held::give_back);
    drop(zeros);
    allocator.trim();
    settles(allocator, |stats| (stats.in_use, stats.active, stats.idle, stats.blocks) == (0, 0, 0, 0));
    settles(allocator, |stats| stats.retained <= stats.mapped);
    let zeros: Vec<_> = SIZES.iter().map(|&size| Held::zeros(allocator, size)).collect();
    zeros.iter().for_each(Held::check_zero);
}

fn allocators() -> Vec<Arc<dyn Allocator>> {
    let busy = Options { decay: Some(Duration::ZERO), max_idle: Some(1 << 20), huge: false, ..Options::default() };
    vec![Pool::new(Options::default()), Pool::new(busy), Pages::new(true), Calloc::aligned(4096).unwrap()]
}

fn adaptors() -> Vec<Arc<dyn Allocator>> {
    let guarded = Guarded::new(GuardedOptions { keep: 1 << 20, ..Default::default() });
    let over = Pool::over(Limited::new(Pages::new(true), 1 << 40), Options::default());
    let buffer = Buffer::growing(Pages::new(true), 1 << 20);
    vec![Filled::new(guarded, Some(1), Some(2)), over, buffer]
}

/// Fails each of the calls in turn, and `fail - 1` that follow; how many there were.
fn each_in_turn(allocators: Makes, calls: &[Call], fail: i64) -> i64 {
    for pass in 0.. {
        let mut reached = false;
        for allocator in allocators() {
            fail_after(calls, pass, fail);
            let blocks = program(&*allocator);
            // Whether a call was there to fail: otherwise the next but `pass` would fail now.
            let unused = fail == 1 && (0..=pass).any(|_| injected(calls[0]));
            fail_after(&[], 0, 0);
            reached |= !unused;
            recovers(&*allocator, blocks);
        }
        if !reached || pass > 6 && fail > 1 {
            return pass;
        }
    }
    0
}

type Makes = fn() -> Vec<Arc<dyn Allocator>>;

/// While which calls fail, how many at a time, and how many there are at least.
fn in_turn(makes: Makes, failing: &[(&[Call], i64, i64)]) {
    for &(calls, fail, least) in failing {
        // Windows has neither: idle memory is decommitted as a whole, and no pages are advised.
        if cfg!(unix) || !matches!(calls, [Call::Discard | Call::AdviseHuge]) {
            assert!(each_in_turn(makes, calls, fail) >= least, "{calls:?}, {fail} times");
        }
    }
}

/// Four at a time as in a small address space: all that is tried in the first place for segments fails.
fn mapping() {
    in_turn(allocators, &[(&[Call::Map], 1, 21), (&[Call::Map], 4, 1), (&[Call::Map], FOREVER, 1)]);
}

fn giving_back() {
    use Call::{Discard, Unmap};
    let failing: [(&[_], _, _); 4] =
        [(&[Unmap], 1, 4), (&[Unmap], FOREVER, 1), (&[Discard], 1, 6), (&[Discard], FOREVER, 1)];
    in_turn(allocators, &failing);
}

fn asking_and_everything_at_once() {
    use Call::{AdviseHuge, Discard, Map, Resident, Spawn, Unmap};
    let all = [Map, Unmap, Discard, AdviseHuge, Spawn, Resident];
    let failing: [(&[_], _, _); 3] = [(&[AdviseHuge], FOREVER, 1), (&[Resident], FOREVER, 1), (&all, FOREVER, 1)];
    in_turn(allocators, &failing);
}

fn under_adaptors() {
    let calls = [[Call::Map], [Call::Unmap], [Call::Discard], [Call::Protect]];
    let failing: Vec<_> = calls.iter().flat_map(|call| [4, FOREVER].map(|fail| (&call[..], fail, 1))).collect();
    in_turn(adaptors, &failing);
}

/// What neither can be emptied nor unmapped stays idle: it is used again, and never called zero.
fn nothing_can_be_given_back() {
    for allocator in allocators() {
        for pass in 0..4 {
            fail_after(&[Call::Discard, Call::Unmap], pass, FOREVER);
            let blocks = program(&*allocator);
            let stats = allocator.stats();
            if find::<Pool>(&allocator).is_some() {
                assert!(stats.idle > 0 && stats.active + stats.idle + stats.retained <= stats.mapped, "{stats:?}");
            }
            let zeros: Vec<_> = SIZES.iter().map(|&size| Held::zeros(&*allocator, size)).collect();
            zeros.iter().for_each(Held::check_zero);
            fail_after(&[], 0, 0);
            drop(zeros);
            recovers(&*allocator, blocks);
        }
    }
}

/// A pool that is dropped while nothing can be unmapped leaves no address that seems to be somebody's.
fn dropped_while_nothing_can_be_unmapped() {
    for pass in 0..5 {
        for allocator in allocators() {
            let blocks = program(&*allocator);
            let addresses: Vec<_> = blocks.iter().map(Held::address).collect();
            drop(blocks);
            fail_after(&[Call::Unmap, Call::Discard], pass, FOREVER);
            drop(allocator);
            fail_after(&[], 0, 0);
            assert!(addresses.iter().all(|&at| firsttouch::address_map::owner(at).is_none()));
        }
    }
    allocators().iter().for_each(|allocator| recovers(&**allocator, program(&**allocator)));
}

/// Without a thread, memory decays as the pool is used; the thread comes as soon as it can be had.
fn a_purger_that_cannot_be_started() {
    let pool = Pool::new(Options { decay: Some(Duration::from_millis(200)), ..Options::default() });
    fail_after(&[Call::Spawn], 0, FOREVER);
    Held::filled(&*pool, 50 << 20, 1).give_back();
    #[cfg(unix)]
    assert_eq!(threads_called("firsttouch"), 0);
    let mut kept = Vec::new();
    within("idle memory goes as others are taken", || {
        kept.push(Held::filled(&*pool, 100_000, 2));
        pool.stats().idle < 4 << 20
    });
    fail_after(&[], 0, 0);
    purger::resume();
    kept.into_iter().for_each(Held::give_back);
    within("idle memory goes by itself", || pool.stats().idle == 0);
}
