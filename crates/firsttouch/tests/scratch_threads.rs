//! Any thread opens, closes, allocates and frees, even blocks of other threads, while another resets.

mod scratch_common;

use firsttouch::Request;
use firsttouch::adaptors::{self, Pool, Tracked};
use firsttouch::scratch::{Backing, Buffer, Options, Refused, Slot};
use firsttouch::sources::Malloc;
use scratch_common::{Dice, Piece, fixed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::scope;
use std::time::{Duration, Instant};

const THREADS: u64 = 5;

/// One thread's random program: scopes nest, blocks outlive them, change size, and go to the neighbour.
fn work(backing: &dyn Backing, seed: u64, to: &Sender<Piece>, from: &Receiver<Piece>, end: Instant) -> usize {
    let (mut dice, mut kept, mut open) = (Dice(seed), Vec::<Piece>::new(), Vec::new());
    let mut served = 0;
    let mut count = seed << 32;
    while Instant::now() < end {
        count += 1;
        if dice.roll(4) == 0 && open.len() < 5 {
            open.push(backing.open());
        }
        let slot = open.last().copied().unwrap_or(Slot::OUTSIDE);
        let size = if dice.roll(20) == 0 { dice.roll(60_000) } else { dice.roll(3_000) };
        let request = Request::bytes(size).with_zeroed(dice.roll(3) == 0);
        match Piece::new(backing, slot, request, count) {
            Ok(piece) if dice.roll(3) == 0 => _ = to.send(piece),
            Ok(piece) => kept.push(piece),
            Err(Refused::Fragmented) => {}
            Err(Refused::Failed(error)) => assert_eq!(error.asked, request.size()),
        }
        served += 1;
        if dice.roll(6) == 0 && !kept.is_empty() {
            let at = dice.roll(kept.len());
            kept[at].resize(backing, dice.roll(5_000), count);
        }
        kept.extend(from.try_iter().take(3));
        while kept.len() > 20 {
            kept.swap_remove(dice.roll(kept.len())).give_back(backing);
        }
        if dice.roll(4) == 0
            && let Some(slot) = open.pop()
        {
            backing.close(slot);
        }
    }
    kept.into_iter().for_each(|piece| piece.give_back(backing));
    open.into_iter().for_each(|slot| _ = backing.close(slot));
    served
}

fn storm(backing: &dyn Backing) {
    let (end, done) = (Instant::now() + Duration::from_secs(1), AtomicBool::new(false));
    scope(|threads| {
        let (mut to, mut from): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
        from.rotate_right(1);
        let workers: Vec<_> = (0..THREADS)
            .map(|seed| (seed + 1, to.remove(0), from.remove(0)))
            .map(|(seed, to, from)| {
                threads.spawn(move || {
                    let served = work(backing, seed, &to, &from, end);
                    drop(to);
                    from.iter().for_each(|piece| piece.give_back(backing));
                    served
                })
            })
            .collect();
        let other = threads.spawn(|| {
            while !done.load(Relaxed) {
                let _ = backing.reset();
                assert!(backing.capacity() >= backing.used().min(1));
                backing.survivors(Slot::OUTSIDE);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let served: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Relaxed);
        other.join().unwrap();
        assert!(served.into_iter().all(|served| served.unwrap() > if cfg!(tsan) { 4 } else { 100 }));
    });
    assert_eq!((backing.used(), backing.depth(), backing.reset()), (0, 0, Ok(())));
}

#[test]
fn a_buffer_that_grows() {
    let tracked = Tracked::new(Pool::new(adaptors::Options::default()), None);
    let options = Options { chunk_size: 64 << 10, ..Options::default() };
    let buffer = Buffer::growing(tracked.clone(), options).unwrap();
    storm(&*buffer);
    assert_eq!((buffer.capacity(), tracked.tally().live_blocks), (0, 0));
}

#[test]
fn a_buffer_with_a_limit_in_debug_mode() {
    let tracked = Tracked::new(Arc::new(Malloc), None);
    let options = Options { chunk_size: 32 << 10, limit: Some(200_000), debug: true, site: None };
    let buffer = Buffer::growing(tracked.clone(), options).unwrap();
    storm(&*buffer);
    let peak = tracked.tally().peak_bytes;
    assert!(peak <= 200_000, "{peak} bytes");
    assert_eq!(buffer.damage(), None);
}

#[test]
fn a_buffer_of_a_fixed_size() {
    storm(&*fixed(100_000, false, false));
}

#[test]
fn a_buffer_of_a_fixed_size_in_debug_mode() {
    let buffer = fixed(100_000, true, true);
    storm(&*buffer);
    assert_eq!(buffer.damage(), None);
}
