//! Any thread allocates and frees, even blocks of other threads, while another resets.

use crate::common::tracked::Tracked;
use crate::pieces::{Dice, Piece, fixed};
use firsttouch::Allocator as _;
use firsttouch::Request;
use firsttouch::adaptors::{self, Limited, Pool};
use firsttouch::scratch::Buffer;
use firsttouch::sources::Malloc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::scope;
use std::time::{Duration, Instant};

const THREADS: u64 = 5;

/// One thread's random program: blocks come and go, change size, and go to the neighbour.
fn work(buffer: &Buffer, seed: u64, to: &Sender<Piece>, from: &Receiver<Piece>, end: Instant) -> usize {
    let (mut dice, mut kept) = (Dice(seed), Vec::<Piece>::new());
    let mut served = 0;
    let mut count = seed << 32;
    while Instant::now() < end {
        count += 1;
        let size = if dice.roll(20) == 0 { dice.roll(60_000) } else { dice.roll(3_000) };
        let request = Request::bytes(size).with_zeroed(dice.roll(3) == 0);
        match Piece::new(buffer, request, count) {
            Ok(piece) if dice.roll(3) == 0 => _ = to.send(piece),
            Ok(piece) => kept.push(piece),
            Err(error) => assert_eq!(error.asked, request.size()),
        }
        served += 1;
        if dice.roll(6) == 0 && !kept.is_empty() {
            let at = dice.roll(kept.len());
            kept[at].resize(buffer, dice.roll(5_000), count);
        }
        kept.extend(from.try_iter().take(3));
        while kept.len() > 20 {
            kept.swap_remove(dice.roll(kept.len())).give_back(buffer);
        }
        if dice.roll(4) == 0 {
            buffer.settle();
        }
    }
    kept.into_iter().for_each(|piece| piece.give_back(buffer));
    served
}

fn storm(buffer: &Buffer) {
    let (end, done) = (Instant::now() + Duration::from_secs(1), AtomicBool::new(false));
    scope(|threads| {
        let (mut to, mut from): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
        from.rotate_right(1);
        let workers: Vec<_> = (0..THREADS)
            .map(|seed| (seed + 1, to.remove(0), from.remove(0)))
            .map(|(seed, to, from)| {
                threads.spawn(move || {
                    let served = work(buffer, seed, &to, &from, end);
                    drop(to);
                    from.iter().for_each(|piece| piece.give_back(buffer));
                    served
                })
            })
            .collect();
        let other = threads.spawn(|| {
            while !done.load(Relaxed) {
                buffer.reset();
                assert!(buffer.capacity() >= buffer.used().min(1));
                assert!(!buffer.lent(&(0..1)));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let served: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Relaxed);
        other.join().unwrap();
        assert!(served.into_iter().all(|served| served.unwrap() > if cfg!(tsan) { 4 } else { 100 }));
    });
    buffer.reset();
    assert_eq!(buffer.used(), 0);
}

#[test]
fn a_buffer_that_grows() {
    let tracked = Pool::new(adaptors::Options::default());
    let buffer = Buffer::growing(tracked.clone(), 64 << 10);
    storm(&buffer);
    assert_eq!((buffer.capacity(), tracked.stats().blocks), (0, 0));
}

#[test]
fn a_buffer_with_a_limit() {
    let tracked = Tracked::new(Arc::new(Malloc));
    let buffer = Buffer::growing(Limited::new(tracked.clone(), 200_000), 32 << 10);
    storm(&buffer);
    let peak = tracked.stats().peak_in_use;
    assert!(peak <= 200_000, "{peak} bytes");
}

#[test]
fn a_buffer_of_a_fixed_size() {
    storm(&fixed(100_000, false));
}
