//! Law 6 for scratch buffers: in a child the lock is free and blocks are in place; shared storage is its parent's.

mod common;
mod scratch_common;

use common::alone::alone;
use common::forked::fork;
use firsttouch::Request;
use firsttouch::adaptors::{self, Pool};
use firsttouch::allocator::{AllocError, Limit};
use firsttouch::scratch::{Backing, Buffer, Options, Refused};
use scratch_common::{Dice, Piece, fixed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::scope;

fn some(backing: &dyn Backing, seed: u64) {
    let slot = backing.open();
    let mut dice = Dice(seed);
    let pieces: Vec<_> =
        (0..12).filter_map(|n| Piece::new(backing, slot, Request::bytes(dice.roll(30_000)), seed + n).ok()).collect();
    assert_eq!(backing.close(slot).survivors, pieces.len());
    pieces.into_iter().for_each(|piece| piece.give_back(backing));
}

#[test]
fn a_storm() {
    alone("a_storm", || {
        let pool = Pool::new(adaptors::Options::default());
        let options = Options { chunk_size: 64 << 10, ..Options::default() };
        let growing = Buffer::growing(pool, options).unwrap();
        for backing in [growing as Arc<dyn Backing>, fixed(200_000, false, true)] {
            let (backing, stop) = (&*backing, AtomicBool::new(false));
            let slot = backing.open();
            let mine: Vec<_> = (0..6).map(|n| Piece::bytes(backing, slot, 700 << n, n)).collect();
            scope(|threads| {
                for seed in 0..2 {
                    let stop = &stop;
                    threads.spawn(move || {
                        while !stop.load(Relaxed) {
                            some(backing, seed * 1000);
                        }
                    });
                }
                for round in 0..60 {
                    let child = fork(|| {
                        mine.iter().for_each(Piece::check);
                        some(backing, round);
                        backing.reset().unwrap_err();
                    });
                    some(backing, round);
                    child.join();
                }
                stop.store(true, Relaxed);
            });
            mine.into_iter().for_each(|piece| piece.give_back(backing));
            backing.close(slot);
            backing.reset().unwrap();
            assert_eq!((backing.used(), backing.depth()), (0, 0));
        }
    });
}

#[test]
fn buffers_come_and_go_meanwhile() {
    alone("buffers_come_and_go_meanwhile", || {
        let stop = AtomicBool::new(false);
        scope(|threads| {
            threads.spawn(|| {
                while !stop.load(Relaxed) {
                    let pool = Pool::new(adaptors::Options::default());
                    some(&*Buffer::growing(pool, Options::default()).unwrap(), 5);
                }
            });
            (0..60).for_each(|round| fork(|| some(&*fixed(100_000, true, false), round)).join());
            stop.store(true, Relaxed);
        });
    });
}

#[test]
fn shared_storage_is_closed_in_a_child() {
    alone("shared_storage_is_closed_in_a_child", || {
        let buffer = fixed(100_000, true, true);
        let slot = buffer.open();
        let piece = Piece::bytes(&*buffer, slot, 1000, 1);
        let child = fork(|| {
            let closed = Refused::Failed(AllocError::new(64, Limit::Forked));
            let inner = buffer.open();
            assert_eq!(Piece::new(&*buffer, inner, Request::bytes(64), 2).err(), Some(closed));
            assert!(AllocError::new(64, Limit::Forked).to_string().contains("forked child"));
            // The parent owns it: a free is taken and changes nothing.
            piece.check();
            assert_eq!(buffer.usable_size(piece.address), Some(1024));
            let mut same = Piece::copy(&piece);
            assert!(same.resize(&*buffer, 500, 1) && !same.resize(&*buffer, 2000, 1));
            assert_eq!(same.usable, 1024);
            same.give_back(&*buffer);
            piece.check();
            assert_eq!(buffer.close(inner).damage, None);
            assert_eq!(buffer.used(), 1024);
            fork(|| assert_eq!(Piece::new(&*buffer, slot, Request::bytes(64), 2).err(), Some(closed))).join();
        });
        Piece::bytes(&*buffer, slot, 1000, 2).give_back(&*buffer);
        child.join();
        piece.give_back(&*buffer);
        assert_eq!(buffer.close(slot).damage, None);
    });
}

/// What lies idle before a fork would be copied if it were written again.
#[test]
fn idle_chunks_go_before_a_fork() {
    alone("idle_chunks_go_before_a_fork", || {
        let tracked = adaptors::Tracked::new(Arc::new(firsttouch::sources::Malloc), None);
        let buffer = Buffer::growing(tracked.clone(), Options::default()).unwrap();
        some(&*buffer, 1);
        assert_eq!(tracked.tally().live_blocks, 1);
        fork(|| assert_eq!(tracked.tally().live_blocks, 0)).join();
        some(&*buffer, 1);
    });
}
