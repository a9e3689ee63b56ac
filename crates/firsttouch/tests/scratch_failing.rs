//! An upstream, or a system, that fails: at each call in turn, and from one call on. Nothing is lost, and what lives is
//! as it was.

#![allow(unsafe_code)] // Safety: what is not refused is passed on as it is.

mod common;
mod scratch_common;

use common::alone::alone;
use firsttouch::Request;
use firsttouch::adaptors::{self, Pool, Tracked};
use firsttouch::allocator::{AllocError, Allocator, Block, Description, Limit};
use firsttouch::os::{Call, fail_after};
use firsttouch::scratch::{Backing, Buffer, Options, Refused, Slot};
use firsttouch::sources::{Malloc, Pages};
use scratch_common::{Piece, fixed};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Serves so many requests, refuses so many, and serves again.
struct Failing {
    upstream: Arc<dyn Allocator>,
    pass: AtomicI64,
    fail: AtomicI64,
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
}

/// Grows, shrinks, escapes; how many requests were refused.
fn program(backing: &dyn Backing) -> usize {
    let mut refused = 0;
    let mut take = |slot, size, seed| {
        let piece = Piece::new(backing, slot, Request::bytes(size).with_zeroed(seed % 3 == 0), seed);
        if let Err(Refused::Failed(error)) = &piece {
            assert_eq!(error.asked, size);
            refused += 1;
        }
        piece.ok()
    };
    let mut kept: Vec<Piece> = Vec::new();
    for round in 0..3 {
        let slot = backing.open();
        kept.extend((0..30).filter_map(|n| take(slot, 3000 + n * 100, n as u64)));
        kept.extend((0..3).filter_map(|n| take(slot, 20_000 + n * 1000, n as u64)));
        if let Some(last) = kept.last_mut() {
            last.resize(backing, 30_000, 77);
            last.resize(backing, 10_000, 78);
        }
        let (stay, go): (Vec<_>, Vec<_>) = kept.into_iter().enumerate().partition(|(n, _)| n % 4 == round % 4);
        go.into_iter().for_each(|(_, piece)| piece.give_back(backing));
        kept = stay.into_iter().map(|(_, piece)| piece).collect();
        let closed = backing.close(slot);
        assert_eq!(closed.damage, None);
        kept.iter().for_each(Piece::check);
    }
    kept.into_iter().for_each(|piece| piece.give_back(backing));
    assert_eq!((backing.used(), backing.depth()), (0, 0));
    backing.reset().unwrap();
    refused
}

#[test]
fn each_request_in_turn() {
    for fail in [1, 2, 1000] {
        for (pass, debug) in (0..12).flat_map(|pass| [(pass, false), (pass, true)]) {
            let tracked = Tracked::new(Arc::new(Malloc), None);
            let (pass, fail) = (AtomicI64::new(pass), AtomicI64::new(fail));
            let failing = Arc::new(Failing { upstream: tracked.clone(), pass, fail });
            let options = Options { chunk_size: 64 << 10, debug, ..Options::default() };
            let buffer = Buffer::growing(failing.clone(), options).unwrap();
            program(&*buffer);
            failing.fail.store(0, Relaxed);
            assert_eq!((program(&*buffer), buffer.capacity(), tracked.tally().live_blocks), (0, 0, 0));
        }
    }
}

/// What is doubled is not insisted on, and what failed once is tried again after all that is idle went back.
#[test]
fn less_is_taken_where_there_is_less() {
    let least = 64 << 10;
    let limited = adaptors::Limited::new(Arc::new(Malloc), 4 * least);
    let buffer = Buffer::growing(limited.clone(), Options { chunk_size: least, ..Options::default() }).unwrap();
    let pieces: Vec<_> = (0..4 * 16).map(|n| Piece::bytes(&*buffer, Slot::OUTSIDE, 4096, n)).collect();
    assert_eq!(limited.used(), 4 * least);
    let refused = Piece::new(&*buffer, Slot::OUTSIDE, Request::bytes(100), 1).err();
    let budget = Limit::Budget { allowed: 4 * least, used: 4 * least };
    assert_eq!(refused, Some(Refused::Failed(AllocError::new(100, budget))));
    pieces.into_iter().for_each(|piece| piece.give_back(&*buffer));
    Piece::bytes(&*buffer, Slot::OUTSIDE, 4 * least, 1).give_back(&*buffer);
}

#[test]
fn a_system_that_fails() {
    alone("a_system_that_fails", || {
        let upstreams: [fn() -> Arc<dyn Allocator>; 2] =
            [|| Pool::new(adaptors::Options::default()), || Pages::new(true)];
        for upstream in upstreams {
            for (pass, fail) in (0..8).flat_map(|pass| [(pass, 1), (pass, i64::MAX / 2)]) {
                let options = Options { chunk_size: 64 << 10, ..Options::default() };
                let buffer = Buffer::growing(upstream(), options).unwrap();
                fail_after(&[Call::Map, Call::Unmap, Call::Discard, Call::Spawn], pass, fail);
                program(&*buffer);
                fail_after(&[], 0, 0);
                assert_eq!(program(&*buffer), 0);
            }
        }
    });
}

/// Without a background purger the end of the last scope gives back what is too much.
#[test]
fn without_a_thread() {
    alone("without_a_thread", || {
        fail_after(&[Call::Spawn], 0, i64::MAX / 2);
        let tracked = Tracked::new(Arc::new(Malloc), None);
        let buffer = Buffer::growing(tracked.clone(), Options { chunk_size: 64 << 10, ..Options::default() }).unwrap();
        let slot = buffer.open();
        let pieces: Vec<_> = (0..100).map(|n| Piece::bytes(&*buffer, slot, 8000, n)).collect();
        assert!(tracked.tally().live_blocks > 3);
        pieces.into_iter().for_each(|piece| piece.give_back(&*buffer));
        buffer.close(slot);
        assert_eq!(tracked.tally().live_blocks, 1);
        fail_after(&[], 0, 0);
    });
}

#[test]
fn full_storage_serves_again_after_frees() {
    let buffer = fixed(100_000, false, true);
    assert!(program(&*buffer) > 0);
    assert!(program(&*buffer) > 0);
}
