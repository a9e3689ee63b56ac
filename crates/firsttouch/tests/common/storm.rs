//! Many threads on one allocator: they allocate, pass blocks on, and free them elsewhere and out of order.

use super::held::Held;
use super::pattern::Dice;
use super::process::settles;
use firsttouch::{Allocator, Request};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::scope;

pub fn a_size(dice: &mut Dice) -> usize {
    let shift = 9 + dice.roll(13);
    (1 << shift) + dice.roll(1 << shift)
}

/// Allocates, resizes, keeps some, sends some on to the neighbour, and frees what comes from the other side.
fn work<'a>(
    allocator: &'a dyn Allocator,
    seed: u64,
    to: &Sender<Held<'a>>,
    from: &Receiver<Held<'a>>,
    stop: &AtomicBool,
) {
    let mut dice = Dice(seed);
    let mut kept: Vec<Held> = Vec::new();
    let mut count = seed << 32;
    while !stop.load(Relaxed) {
        count += 1;
        let size = a_size(&mut dice);
        let request = if dice.roll(3) == 0 { Request::zeroed(size) } else { Request::bytes(size) };
        let mut block = Held::new(allocator, request).unwrap();
        block.fill(count);
        if dice.roll(2) == 0 {
            let _ = to.send(block);
        } else {
            kept.push(block);
        }
        if dice.roll(8) == 0 && !kept.is_empty() {
            let at = dice.roll(kept.len());
            kept[at].resize(a_size(&mut dice)).unwrap();
        }
        kept.extend(from.try_iter().take(4));
        while kept.len() > 12 {
            kept.swap_remove(dice.roll(kept.len())).give_back();
        }
    }
    kept.into_iter().for_each(Held::give_back);
}

/// Runs `meanwhile` beside so many threads; nothing is left in the end.
pub fn storm(allocator: &dyn Allocator, count: u64, meanwhile: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    scope(|threads| {
        let (mut to, mut from): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
        from.rotate_right(1);
        let spawn = |seed| {
            let (to, from, stop) = (to.remove(0), from.remove(0), &stop);
            threads.spawn(move || work(allocator, seed, &to, &from, stop))
        };
        let workers: Vec<_> = (1..=count).map(spawn).collect();
        let result = catch_unwind(AssertUnwindSafe(meanwhile));
        stop.store(true, Relaxed);
        // ThreadSanitizer sees that a thread is joined, not that a scope ends.
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        result.unwrap();
    });
    allocator.trim();
    settles(allocator, |stats| (stats.blocks, stats.in_use, stats.active, stats.idle) == (0, 0, 0, 0));
}
