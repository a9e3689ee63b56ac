//! An upstream that fails at each call in turn, and from one call on: nothing is lost, and what lives is as it was. (A
//! failing system is `failing_os.rs`'s.)

#![allow(unsafe_code)] // Safety: what is not refused is passed on as it is.

use crate::common::alone::alone;
use crate::common::counted;
use crate::common::held::Held;
use crate::fixed;
use firsttouch::Request;
use firsttouch::allocator::{AllocError, Allocator, Block, Description, Limit};
use firsttouch::os::{Call, fail_after};
use firsttouch::scratch::Buffer;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Serves so many requests, refuses so many, and serves again.
pub struct Failing {
    pub upstream: Arc<dyn Allocator>,
    pub pass: AtomicI64,
    pub fail: AtomicI64,
}

// SAFETY: requests are passed on or refused.
unsafe impl Allocator for Failing {
    fn describe(&self) -> Description {
        Description::of("failing")
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        if self.pass.fetch_sub(1, Relaxed) <= 0 && self.fail.fetch_sub(1, Relaxed) > 0 {
            return Err(AllocError::new(request.size(), Limit::Upstream));
        }
        self.upstream.allocate(request)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: the core and the tests pass live blocks of this allocator (`Allocator`), which are the upstream's.
        unsafe { self.upstream.deallocate(address) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: the core and the tests pass live blocks of this allocator (`Allocator`), which are the upstream's.
        unsafe { self.upstream.usable_size(address) }
    }

    fn calls_out(&self) -> bool {
        true
    }
}

/// Grows, shrinks, escapes; how many requests were refused.
fn program(buffer: &Buffer) -> usize {
    let mut refused = 0;
    let mut take = |size, seed| {
        let request = Request::bytes(size).with_zeroed(seed % 3 == 0);
        let mut held = Held::new(buffer, request)
            .inspect_err(|error| {
                assert_eq!(error.asked, size);
                refused += 1;
            })
            .ok()?;
        held.fill(seed);
        Some(held)
    };
    let mut kept: Vec<Held> = Vec::new();
    for round in 0..3 {
        kept.extend((0..30).filter_map(|n| take(3000 + n * 100, n as u64)));
        kept.extend((0..3).filter_map(|n| take(20_000 + n * 1000, n as u64)));
        if let Some(last) = kept.last_mut() {
            let _ = last.resize(30_000);
            let _ = last.resize(10_000);
        }
        let (stay, go): (Vec<_>, Vec<_>) = kept.into_iter().enumerate().partition(|(n, _)| n % 4 == round % 4);
        go.into_iter().for_each(|(_, piece): (usize, Held)| piece.give_back());
        kept = stay.into_iter().map(|(_, piece)| piece).collect();
        buffer.settle();
        kept.iter().for_each(Held::check);
    }
    kept.into_iter().for_each(Held::give_back);
    assert_eq!(buffer.used(), 0);
    buffer.reset();
    refused
}

#[test]
fn each_request_in_turn() {
    for fail in [1, 2, 1000] {
        for pass in 0..12 {
            let tracked = counted();
            let (pass, fail) = (AtomicI64::new(pass), AtomicI64::new(fail));
            let failing = Arc::new(Failing { upstream: tracked.clone(), pass, fail });
            let buffer = Buffer::growing(failing.clone(), 64 << 10);
            program(&buffer);
            failing.fail.store(0, Relaxed);
            assert_eq!((program(&buffer), buffer.capacity(), tracked.stats().blocks), (0, 0, 0));
        }
    }
}

/// Without a background purger the end of a scope gives back what is idle.
#[test]
fn without_a_thread() {
    alone("failing::without_a_thread", || {
        fail_after(&[Call::Spawn], 0, i64::MAX / 2);
        let tracked = counted();
        let buffer = Buffer::growing(tracked.clone(), 64 << 10);
        let pieces: Vec<_> = (0..100).map(|n| Held::filled(&*buffer, 8000, n)).collect();
        assert!(tracked.stats().blocks > 3);
        pieces.into_iter().for_each(Held::give_back);
        buffer.settle();
        assert_eq!(tracked.stats().blocks, 0);
        fail_after(&[], 0, 0);
    });
}

#[test]
fn full_storage_serves_again_after_frees() {
    let buffer = fixed(100_000, false);
    assert!(program(&buffer) > 0);
    assert!(program(&buffer) > 0);
}
