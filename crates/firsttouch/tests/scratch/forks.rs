//! Law 6 for scratch buffers: in a child the lock is free and blocks are in place; shared storage is its parent's.

#![allow(unsafe_code)] // Safety: a child's copy of a block stands for the block.

use crate::common::alone::alone;
use crate::common::counted;
use crate::common::forked::fork;
use crate::common::held::Held;
use crate::common::pattern::Dice;
use crate::fixed;
use firsttouch::allocator::{AllocError, Limit};
use firsttouch::scratch::Buffer;
use firsttouch::{Allocator, Request};

fn some(buffer: &Buffer) {
    let mut dice = Dice(1);
    let held: Vec<_> = (0..12).map(|n| Held::filled(buffer, dice.roll(30_000), n)).collect();
    held.into_iter().for_each(Held::give_back);
    buffer.settle();
}

#[test]
fn shared_storage_is_closed_in_a_child() {
    alone("forks::shared_storage_is_closed_in_a_child", || {
        let buffer = fixed(100_000, true);
        let piece = Held::filled(&*buffer, 1000, 1);
        let child = fork(|| {
            let closed = AllocError::new(64, Limit::Forked);
            assert_eq!(Held::new(&*buffer, Request::bytes(64)).err(), Some(closed));
            assert!(closed.to_string().contains("forked child"));
            // The parent owns it: a free is taken and changes nothing.
            // SAFETY: the child has a copy of the parent's block, and does not use the original any more.
            let mut same = unsafe { std::ptr::read(&raw const piece) };
            assert!(same.resize(500).is_err());
            assert_eq!(same.usable(), 1024);
            same.give_back();
            piece.check();
            buffer.settle();
            assert_eq!(buffer.used(), 1024);
            fork(|| assert_eq!(Held::new(&*buffer, Request::bytes(64)).err(), Some(closed))).join();
        });
        Held::filled(&*buffer, 1000, 2).give_back();
        child.join();
        piece.give_back();
        buffer.settle();
    });
}

/// What lies idle before a fork would be copied if it were written again.
#[test]
fn idle_chunks_go_before_a_fork() {
    alone("forks::idle_chunks_go_before_a_fork", || {
        let tracked = counted();
        let buffer = Buffer::growing(tracked.clone(), 1 << 20);
        some(&buffer);
        assert_eq!(tracked.stats().blocks, 1);
        fork(|| assert_eq!(tracked.stats().blocks, 0)).join();
        some(&buffer);
    });
}
