//! What is used again, and how much is held.

use crate::common::alone::alone;
use crate::common::counted;
use crate::common::held::Held;
use crate::common::process::within;
use crate::common::reentrant::Reentrant;
use crate::fixed;
use firsttouch::adaptors::Limited;
use firsttouch::allocator::{AllocError, Limit};
use firsttouch::os::{Call, fail_after};
use firsttouch::scratch::Buffer;
use firsttouch::sources::Malloc;
use firsttouch::{Allocator, Request};
use std::ptr::NonNull;
use std::sync::Arc;

const KIB: usize = 1 << 10;

/// A buffer, and what its upstream sees of it.
fn growing(chunk_size: usize) -> (Arc<Buffer>, Arc<Limited>) {
    let tracked = counted();
    (Buffer::growing(tracked.clone(), chunk_size), tracked)
}

/// A free of the topmost block lowers the top, past those below it that were freed before.
#[test]
fn the_top_comes_down() {
    let (buffer, _) = growing(64 * KIB);
    let [first, second, third, fourth] = [1, 2, 3, 4].map(|n| Held::filled(&*buffer, 1000, n));
    let (at_second, at_fourth) = (second.address(), fourth.address());
    third.give_back();
    let fifth = Held::filled(&*buffer, 1000, 5);
    assert_eq!(fifth.address(), at_fourth + 1024, "what lies below a live block is not used");
    fifth.give_back();
    fourth.give_back();
    second.give_back();
    assert_eq!(Held::filled(&*buffer, 64, 6).address(), at_second);
    first.check();
    first.give_back();
}

/// `x = x * 0.5 + 1`, ten thousand times.
#[test]
fn a_loop_in_one_scope_holds_two_chunks() {
    for size in [100, 2000, 8000] {
        let (buffer, _) = growing(64 * KIB);
        let mut x = Held::filled(&*buffer, size, 0);
        for n in 1..10_000 {
            let half = Held::filled(&*buffer, size, n);
            let next = Held::filled(&*buffer, size, n + 1);
            half.give_back();
            std::mem::replace(&mut x, next).give_back();
        }
        assert!(buffer.capacity() <= 2 * 64 * KIB, "{} of {size}", buffer.capacity());
        x.give_back();
    }
}

/// Small blocks that are kept, one in each of many turns, gather in chunks that are filled up.
#[test]
fn survivors_gather() {
    let (buffer, _) = growing(64 * KIB);
    let mut kept = Vec::new();
    for n in 0..20_000 {
        let temporary = Held::filled(&*buffer, 1000, n);
        if n % 100 == 0 {
            kept.push(Held::filled(&*buffer, 1000, n));
        }
        temporary.give_back();
    }
    assert!(buffer.capacity() <= 4 * buffer.used(), "{} for {}", buffer.capacity(), buffer.used());
    kept.into_iter().for_each(Held::give_back);
}

#[test]
fn large_blocks_are_the_upstreams() {
    let (buffer, tracked) = growing(64 * KIB);
    let small = Held::filled(&*buffer, 8 * KIB - 64, 1);
    let mut large = Held::filled(&*buffer, 8 * KIB, 2);
    let aligned = Held::new(&*buffer, Request::bytes(64).aligned(16 * KIB).unwrap()).unwrap();
    assert_eq!([&small, &large, &aligned].map(|piece| piece.is_known() == Some(true)), [true, false, false]);
    assert_eq!((buffer.used(), tracked.stats().blocks), (8 * KIB - 64, 3));
    large.resize(5000).unwrap();
    [small, large, aligned].into_iter().for_each(Held::give_back);
    assert_eq!(tracked.stats().blocks, 1, "the chunk");
}

#[test]
fn an_idle_chunk_goes_before_a_request_fails() {
    let limited = Limited::new(Malloc::new(), 200 * KIB);
    let buffer = Buffer::growing(limited.clone(), 64 * KIB);
    let chunk = Held::filled(&*buffer, 1000, 1);
    let large = Held::filled(&*buffer, 100 * KIB, 2);
    let refused = Held::new(&*buffer, Request::bytes(50 * KIB)).err();
    let limit = Limit::Budget { allowed: 200 * KIB, used: 164 * KIB };
    assert_eq!(refused, Some(AllocError::new(50 * KIB, limit)));
    chunk.give_back();
    Held::filled(&*buffer, 90 * KIB, 4).give_back();
    large.give_back();
    assert_eq!(limited.used(), 0);
}

#[test]
fn fixed_storage_is_used_to_the_last_gap() {
    let buffer = fixed(14 * 4096, false);
    let mut pieces: Vec<_> = (0..).map_while(|_: usize| Held::new(&*buffer, Request::bytes(4096)).ok()).collect();
    assert!(pieces.len() >= 13);
    let (used, gone) = (buffer.used(), pieces.remove(5));
    let at = gone.address();
    gone.give_back();
    let refused = Held::new(&*buffer, Request::bytes(5000)).err();
    let blocks = pieces.len() as u32;
    let full = Limit::Full { capacity: 14 * 4096, used: used - 4096, blocks };
    assert_eq!(refused, Some(AllocError::new(5000, full)));
    assert!(refused.unwrap().to_string().contains("live blocks; no free piece is large enough"));
    let again = Held::filled(&*buffer, 4096, 2);
    assert_eq!(again.address(), at);
    pieces.into_iter().chain([again]).for_each(Held::give_back);
    assert_eq!(buffer.used(), 0);
}

/// A block that begins inside one of the buffer's is not the buffer's.
#[test]
fn buffers_on_buffers() {
    let (below, _) = growing(64 * KIB);
    let above = Buffer::growing(below.clone(), 4 * KIB);
    let pieces: Vec<_> = (0..100).map(|n| Held::filled(&*above, 64 + n * 10, n as u64)).collect();
    assert!(pieces.iter().filter(|piece| piece.is_known() == Some(true)).count() > 10);
    let is_below = |piece: &&Held| below.list().unwrap().contains(NonNull::new(piece.address() as *mut u8).unwrap());
    assert!(pieces.iter().filter(is_below).count() < pieces.len());
    pieces.into_iter().for_each(Held::give_back);
    above.reset();
    assert_eq!(below.used(), 0);
}

/// Chunks that were unused for a second go, without anybody's doing.
#[test]
fn idle_chunks_are_given_back() {
    let (buffer, tracked) = growing(64 * KIB);
    let pieces: Vec<_> = (0..100).map(|n| Held::filled(&*buffer, 4000, n)).collect();
    pieces.into_iter().for_each(Held::give_back);
    buffer.settle();
    within("idle chunks go", || tracked.stats().blocks == 0);
    assert_eq!(buffer.capacity(), 0);
}

/// Where the purger may not call the upstream, they go as scopes end.
#[test]
fn idle_chunks_of_foreign_memory_are_given_back() {
    let limited = Limited::new(Reentrant::shared(), 1 << 40);
    let buffer = Buffer::growing(limited.clone(), 64 * KIB);
    let pieces: Vec<_> = (0..100).map(|n| Held::filled(&*buffer, 4000, n)).collect();
    pieces.into_iter().for_each(Held::give_back);
    assert!(buffer.capacity() > 4 * 64 * KIB);
    buffer.settle();
    assert_eq!((buffer.capacity(), limited.used()), (0, 0));
}

/// Without a background purger, too.
#[test]
fn idle_chunks_are_given_back_without_a_thread() {
    alone("laws::idle_chunks_are_given_back_without_a_thread", || {
        fail_after(&[Call::Spawn], 0, i64::MAX / 2);
        let (buffer, tracked) = growing(64 * KIB);
        let pieces: Vec<_> = (0..100).map(|n| Held::filled(&*buffer, 8000, n)).collect();
        assert!(tracked.stats().blocks > 3);
        pieces.into_iter().for_each(Held::give_back);
        buffer.settle();
        assert_eq!(tracked.stats().blocks, 0);
        fail_after(&[], 0, 0);
    });
}
