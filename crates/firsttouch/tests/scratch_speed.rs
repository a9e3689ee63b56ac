//! The cost of a block. `cargo test --release --test scratch_speed -- --ignored --nocapture --test-threads 1` prints it.

mod scratch_common;

use firsttouch::adaptors::{self, Pool};
use firsttouch::scratch::{Backing, Buffer, Options, Slot};
use firsttouch::{Allocator, Request};
use scratch_common::fixed;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Nanoseconds of one turn: the best of some rounds, as others use the machine, too.
fn time(turns: usize, mut turn: impl FnMut()) -> f64 {
    (0..turns / 10).for_each(|_| turn());
    let mut rounds: Vec<f64> = (0..40)
        .map(|_| {
            let began = Instant::now();
            (0..turns).for_each(|_| turn());
            began.elapsed().as_nanos() as f64 / turns as f64
        })
        .collect();
    rounds.sort_unstable_by(f64::total_cmp);
    rounds[0]
}

#[allow(unsafe_code)] // Safety: each block is given back once, by its own backing.
fn give_back(backing: &dyn Backing, block: firsttouch::Block) {
    // SAFETY: see above.
    assert!(unsafe { backing.deallocate(block.address) });
}

fn pair(backing: &dyn Backing, slot: Slot, size: usize) {
    let block = backing.allocate(slot, Request::bytes(black_box(size))).unwrap();
    give_back(backing, black_box(block));
}

/// As `x = x * 0.5 + 1`: the next block is taken before the last is given back.
fn alternating(backing: &dyn Backing, slot: Slot, size: usize) -> f64 {
    let mut last = backing.allocate(slot, Request::bytes(size)).unwrap();
    let cost = time(200_000, || {
        let next = backing.allocate(slot, Request::bytes(black_box(size))).unwrap();
        give_back(backing, std::mem::replace(&mut last, next));
    });
    give_back(backing, last);
    cost
}

#[test]
#[ignore = "prints times"]
fn a_block() {
    let pool: Arc<dyn Allocator> = Pool::new(adaptors::Options::default());
    let growing = Buffer::growing(pool.clone(), Options::default()).unwrap();
    for (name, buffer) in [("growing", growing), ("fixed", fixed(1 << 20, false, false))] {
        let backing: &dyn Backing = &*buffer;
        let slot = backing.open();
        for size in [240, 4096, 65_536, 1 << 20] {
            if name == "fixed" && size > 65_536 {
                continue;
            }
            println!("{name}: take and give {size} bytes: {:.1} ns", time(200_000, || pair(backing, slot, size)));
            println!("{name}: take, give the last, {size} bytes: {:.1} ns", alternating(backing, slot, size));
        }
        println!(
            "{name}: open, block, close: {:.1} ns",
            time(200_000, || {
                let slot = backing.open();
                pair(backing, slot, 4096);
                backing.close(slot);
            })
        );
    }
    let bare = time(200_000, || {
        let block = pool.allocate(Request::bytes(black_box(4096))).unwrap();
        #[allow(unsafe_code)] // Safety: it was just taken.
        // SAFETY: see above.
        unsafe {
            pool.deallocate(block.address);
        }
    });
    println!("pool: take and give 4096 bytes: {bare:.1} ns");
}

/// One turn of a loop: so many blocks of 4 KiB at once.
fn turn(buffer: &Buffer, blocks: usize, held: &mut Vec<firsttouch::Block>) {
    let slot = buffer.open();
    held.extend((0..blocks).map(|_| buffer.allocate(slot, Request::bytes(4096)).unwrap()));
    held.drain(..).for_each(|block| give_back(buffer, block));
    buffer.close(slot);
}

/// Turns that just pass the end of a chunk cost no more than turns that stay inside: ratios of interleaved rounds.
#[test]
#[ignore = "prints times"]
fn at_the_edge_of_a_chunk() {
    let pool: Arc<dyn Allocator> = Pool::new(adaptors::Options::default());
    let mut held = Vec::with_capacity(5000);
    for edge in [256, 512, 1024, 2048, 4096] {
        let buffers = [edge - 40, edge - 40, edge + 1].map(|blocks| {
            let buffer = Buffer::growing(pool.clone(), Options::default()).unwrap();
            (blocks, buffer)
        });
        let mut ratios: Vec<[f64; 2]> = (0..61)
            .map(|_| {
                let cost = buffers.each_ref().map(|(blocks, buffer)| {
                    let turns = 40_000 / blocks;
                    let began = Instant::now();
                    (0..turns).for_each(|_| turn(buffer, *blocks, &mut held));
                    began.elapsed().as_secs_f64() / (turns * blocks) as f64
                });
                [cost[1] / cost[0], cost[2] / cost[0]]
            })
            .collect();
        let mut median = |which: usize| {
            ratios.sort_unstable_by(|a, b| a[which].total_cmp(&b[which]));
            ratios[30][which]
        };
        println!("{edge} blocks: the same again {:.3}, past the edge {:.3}", median(0), median(1));
    }
}
