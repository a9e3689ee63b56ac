//! Rust's own allocator fails at the n-th request of an operation, for every n, once and from there on: the operation
//! fails with an error or does without, nothing is lost, and the next one works.
//!
//! What can't fail is left to who links the core: stable Rust has no `Arc` or `Box` that can. These are all constructors
//! of allocators and buffers (an `Arc`, the boxes of a pool's shards and heaps, an entry with the background purger),
//! opening a scope, texts of reasons and expressions, and threads that help with a first touch. Each is small and bounded
//! but for the background purger's list (16 bytes for each living allocator). The native module serves them from a
//! reserve.

#![allow(unsafe_code)] // Safety: passes requests on or refuses them; blocks go back to whoever gave them.

use firsttouch::Allocator;
use firsttouch::adaptors::{Filled, Limited, Options, Pool};
use firsttouch::allocator::Request;
use firsttouch::pages::placement::{Placement, Populate};
use firsttouch::scratch::Arena;
use firsttouch::scratch::Buffer;
use firsttouch::sources::{Calloc, Guarded, GuardedOptions, Malloc, Pages, Side};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    /// Requests of this thread until one fails; none where it is zero, all where it is negative.
    static COUNTDOWN: Cell<i64> = const { Cell::new(0) };
    static ONWARDS: Cell<bool> = const { Cell::new(false) };
}

struct Failing;

#[global_allocator]
static GLOBAL: Failing = Failing;

fn fails() -> bool {
    let before = COUNTDOWN.get();
    if before > 0 {
        COUNTDOWN.set(if before == 1 && ONWARDS.get() { -1 } else { before - 1 });
    }
    before == 1 || before < 0
}

// SAFETY: as the system's allocator, or null.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the core and the tests pass live blocks of this allocator (`Allocator`), which are the upstream's.
        if fails() { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the core and the tests pass live blocks of this allocator (`Allocator`), which are the upstream's.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Runs `operation` with a failure at the first, second, ... request, until it asks no more often. Whether it worked.
fn each_failure(name: &str, mut operation: impl FnMut() -> bool) {
    for onwards in [false, true] {
        let mut n = 1;
        loop {
            ONWARDS.set(onwards);
            COUNTDOWN.set(n);
            let worked = operation();
            let failed = COUNTDOWN.replace(0) <= 0;
            assert!(worked || failed, "{name}: no request failed, and it did not work");
            if !failed {
                break;
            }
            assert!(operation(), "{name}: request {n} failed once, and now it does not work any more");
            n += 1;
            assert!(n < 10_000, "{name}: no end");
        }
    }
}

/// A few blocks come, grow, shrink and go; whether all could be had.
fn blocks(allocator: &dyn Allocator) -> bool {
    let mut worked = true;
    for size in [1, 3_000, 70_000, 3 << 20] {
        for request in [Request::bytes(size), Request::zeroed(size)] {
            let Ok(block) = allocator.allocate(request) else {
                worked = false;
                continue;
            };
            let mut address = block.address;
            // SAFETY: a block of this size that nobody else knows, until it is given back.
            unsafe {
                address.write_bytes(7, size);
                match allocator.reallocate(address, Request::bytes(2 * size)) {
                    Ok(moved) => address = moved.address,
                    Err(_) => worked = false,
                }
                assert_eq!((address.read(), address.add(size - 1).read()), (7, 7));
                allocator.deallocate(address);
            }
        }
    }
    allocator.trim();
    allocator.stats();
    worked
}

fn pool() -> Arc<dyn Allocator> {
    Pool::new(Options::default())
}

#[test]
fn allocators() {
    let placement = Placement { populate: Populate::Threads(1), ..Placement::default() };
    let options = GuardedOptions { side: Side::Before, keep: 8 << 20 };
    let buffer = |upstream| Buffer::growing(upstream, Buffer::CHUNK);
    let all: [(&str, Arc<dyn Allocator>); 13] = [
        ("malloc", Arc::new(Malloc)),
        ("calloc", Calloc::new()),
        ("aligned", Calloc::aligned(4096).unwrap()),
        ("pages", Pages::new(true)),
        ("placed pages", Pages::placed(placement)),
        ("pool", pool()),
        ("pool over malloc", Pool::over(Arc::new(Malloc), Options::default())),
        ("limited", Limited::new(pool(), 1 << 30)),
        ("guarded", Guarded::new(GuardedOptions::default())),
        ("guarded before", Guarded::new(options)),
        ("filled", Filled::new(pool(), Some(1), Some(2))),
        ("scratch", buffer(pool())),
        ("scratch over malloc", buffer(Arc::new(Malloc))),
    ];
    for (name, allocator) in all {
        assert!(blocks(allocator.as_ref()), "{name}");
        each_failure(name, || blocks(allocator.as_ref()));
    }
}

#[test]
fn arenas() {
    let mut arena = Arena::new();
    each_failure("arena", || {
        let worked = (1..200).all(|n| arena.alloc_slice::<u8>(n * 50).is_ok());
        arena.reset();
        worked
    });
}
