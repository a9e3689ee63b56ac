//! Law 6 for scratch buffers: in a child the lock is free and blocks are in place; shared storage is its parent's.

use crate::common::alone::alone;
use crate::common::counted;
use crate::common::forked::fork;
use crate::pieces::{Dice, Piece, fixed};
use firsttouch::allocator::{AllocError, Limit};
use firsttouch::scratch::Buffer;
use firsttouch::{Allocator, Request};

fn some(buffer: &Buffer, seed: u64) {
    let mut dice = Dice(seed);
    let pieces: Vec<_> =
        (0..12).filter_map(|n| Piece::new(buffer, Request::bytes(dice.roll(30_000)), seed + n).ok()).collect();
    pieces.into_iter().for_each(|piece| piece.give_back(buffer));
    buffer.settle();
}

#[test]
fn shared_storage_is_closed_in_a_child() {
    alone("forks::shared_storage_is_closed_in_a_child", || {
        let buffer = fixed(100_000, true);
        let piece = Piece::bytes(&buffer, 1000, 1);
        let child = fork(|| {
            let closed = AllocError::new(64, Limit::Forked);
            assert_eq!(Piece::new(&buffer, Request::bytes(64), 2).err(), Some(closed));
            assert!(closed.to_string().contains("forked child"));
            // The parent owns it: a free is taken and changes nothing.
            let mut same = Piece::copy(&piece);
            assert!(!same.resize(&buffer, 500, 1));
            assert_eq!(same.usable, 1024);
            same.give_back(&buffer);
            piece.check();
            buffer.settle();
            assert_eq!(buffer.used(), 1024);
            fork(|| assert_eq!(Piece::new(&buffer, Request::bytes(64), 2).err(), Some(closed))).join();
        });
        Piece::bytes(&buffer, 1000, 2).give_back(&buffer);
        child.join();
        piece.give_back(&buffer);
        buffer.settle();
    });
}

/// What lies idle before a fork would be copied if it were written again.
#[test]
fn idle_chunks_go_before_a_fork() {
    alone("forks::idle_chunks_go_before_a_fork", || {
        let tracked = counted();
        let buffer = Buffer::growing(tracked.clone(), 1 << 20);
        some(&buffer, 1);
        assert_eq!(tracked.stats().blocks, 1);
        fork(|| assert_eq!(tracked.stats().blocks, 0)).join();
        some(&buffer, 1);
    });
}
