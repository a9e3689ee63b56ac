//! Threads on different nodes that hand each other blocks of one pool: what a thread is given and then writes is on its
//! own node, page by page. The machine has the nodes, or pretends to.

#![allow(unsafe_code)] // Safety: a `Kept` is the only holder of its block.

use firsttouch::adaptors::huge_min;
use firsttouch::os::page_size;
use firsttouch::{Allocator, Request};
use std::ptr::NonNull;

const MIB: usize = 1 << 20;
/// What a processor keeps, what joins its neighbours, and what shares huge pages.
pub const SIZES: [usize; 5] = [20_000, 200_000, 900_000, 2 * MIB + 70_000, 5 * MIB + 12_345];

/// A machine with two nodes or more.
pub trait Machine: Sync {
    /// Runs `body` on the node of that number, of those that have memory and processors.
    fn on(&self, node: usize, body: &mut (dyn FnMut() + Send));
    /// Writes every page of a range on the node that runs this thread.
    fn write(&self, address: usize, size: usize);
    /// Which of the nodes each page is on; negative where none is there.
    fn nodes(&self, address: usize, size: usize) -> Vec<i32>;
}

/// A live block.
pub struct Kept<'a> {
    pub address: usize,
    pub size: usize,
    pool: &'a dyn Allocator,
}

impl<'a> Kept<'a> {
    pub fn new(pool: &'a dyn Allocator, size: usize, zeroed: bool) -> Self {
        // At a page, so that halves of a block have no page in common.
        let request = Request::bytes(size).with_zeroed(zeroed).aligned(page_size()).unwrap();
        let block = pool.allocate(request).unwrap();
        let address = block.address.as_ptr() as usize;
        if block.zeroed {
            // SAFETY: the block is ours.
            let bytes = unsafe { std::slice::from_raw_parts(block.address.as_ptr(), size) };
            assert!(bytes.iter().step_by(4093).all(|&byte| byte == 0), "{size} bytes are not zero");
        }
        Self { address, size, pool }
    }

    /// The same block in another thread's hands: an address and a size.
    pub fn give_back(self) {}
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let address = NonNull::new(std::ptr::with_exposed_provenance_mut(self.address)).unwrap();
        // SAFETY: it came from there, and goes back once.
        unsafe { self.pool.deallocate(address) }
    }
}

/// On `node`: a block, written by that thread.
fn made<'a>(machine: &dyn Machine, pool: &'a dyn Allocator, node: usize, size: usize, zeroed: bool) -> Kept<'a> {
    let mut made = None;
    machine.on(node, &mut || {
        let block = Kept::new(pool, size, zeroed);
        machine.write(block.address, size);
        made = Some(block);
    });
    let block = made.unwrap();
    check(machine, &block, node);
    block
}

#[track_caller]
fn check(machine: &dyn Machine, block: &Kept<'_>, node: usize) {
    let nodes = machine.nodes(block.address, block.size);
    let there = nodes.iter().filter(|&&its| its == node as i32).count();
    let runs: Vec<(i32, usize)> = nodes.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
    assert_eq!(there, nodes.len(), "of {} bytes on node {node}: nodes and pages {runs:?}", block.size);
}

fn on(machine: &dyn Machine, node: usize, body: impl FnOnce() + Send) {
    let mut body = Some(body);
    machine.on(node, &mut || body.take().unwrap()());
}

/// One allocates and writes, the other gives back; then either is given new blocks.
pub fn handed_over(machine: &dyn Machine, pool: &dyn Allocator, zeros: bool) {
    for round in 0..2 {
        for (at, size) in SIZES.into_iter().enumerate() {
            let (a, b) = ((at + round) % 2, (at + round + 1) % 2);
            let zeroed = zeros && round % 2 == 1;
            let blocks: Vec<_> = (0..2).map(|_| made(machine, pool, a, size, zeroed)).collect();
            on(machine, b, || drop(blocks));
            let (one, other) = (made(machine, pool, a, size, zeroed), made(machine, pool, b, size, zeroed));
            on(machine, a, || drop(other));
            on(machine, b, || drop(one));
        }
    }
}

/// One allocates, the other writes first; the one gives back and is given it again.
pub fn written_elsewhere(machine: &dyn Machine, pool: &dyn Allocator) {
    for size in SIZES {
        for (a, b) in [(0, 1), (1, 0), (0, 1)] {
            let mut block = None;
            on(machine, a, || block = Some(Kept::new(pool, size, false)));
            let block = block.unwrap();
            on(machine, b, || machine.write(block.address, size));
            on(machine, a, || drop(block));
            drop(made(machine, pool, a, size, false));
        }
    }
}

/// Both write first, each its half, as a parallel loop does.
pub fn spread(machine: &dyn Machine, pool: &dyn Allocator, zeros: bool) {
    for size in SIZES {
        let mut block = None;
        on(machine, 0, || block = Some(Kept::new(pool, size, false)));
        let block = block.unwrap();
        let half = size / 2 / page_size() * page_size();
        on(machine, 1, || machine.write(block.address + half, size - half));
        on(machine, 0, || machine.write(block.address, half));
        if half > 0 && size < 2 * MIB {
            assert_eq!(machine.nodes(block.address + half, 1), [1]);
        }
        on(machine, 0, || drop(block));
        let (one, other) = (made(machine, pool, 0, size, zeros && size < MIB), made(machine, pool, 1, size, false));
        on(machine, 0, || drop((one, other)));
        drop(made(machine, pool, 1, size, false));
    }
}

/// One writes a block but for its last page, which the other writes first; the one gives back and is given it again.
pub fn ends_elsewhere(machine: &dyn Machine, pool: &dyn Allocator) {
    for size in SIZES.into_iter().filter(|&size| size < huge_min(false)) {
        let last = (size - 1) / page_size() * page_size();
        let mut block = None;
        on(machine, 0, || block = Some(Kept::new(pool, size, false)));
        let block = block.unwrap();
        on(machine, 0, || machine.write(block.address, last));
        on(machine, 1, || machine.write(block.address + last, size - last));
        assert_eq!(machine.nodes(block.address + last, 1), [1]);
        on(machine, 0, || drop(block));
        drop(made(machine, pool, 0, size, false));
    }
}

/// A block grows in place where its thread is, and nowhere else.
pub fn grown(machine: &dyn Machine, pool: &dyn Allocator) {
    for size in [300_000, 2 * MIB + 70_000] {
        let mut last = Some(made(machine, pool, 0, size, false));
        let mut behind = Vec::new();
        on(machine, 0, || behind.extend((0..8).map(|_| Kept::new(pool, size, false))));
        on(machine, 1, || behind.iter().for_each(|block| machine.write(block.address, size)));
        on(machine, 1, || behind.clear()); // joined at once with what lies beside it
        for node in [0, 1, 0] {
            let mut block = last.take().unwrap();
            let mut grew = false;
            on(machine, node, || {
                let address = NonNull::new(std::ptr::with_exposed_provenance_mut(block.address)).unwrap();
                // SAFETY: the block is ours.
                grew = unsafe { pool.resize_in_place(address, block.size + size) };
                if grew {
                    machine.write(block.address, block.size + size);
                }
            });
            assert_eq!(grew, node == 0, "{size} bytes more in place, on node {node}");
            if grew {
                block.size += size;
                check(machine, &block, node);
            }
            last = Some(block);
        }
    }
}

/// What somebody moves to the other node by `go`, and who frees it, is looked at before it is used again.
pub fn moved(machine: &dyn Machine, pool: &dyn Allocator, go: &dyn Fn(usize, usize)) {
    for size in SIZES {
        let turn = || made(machine, pool, 0, size, false);
        for _ in 0..2 {
            let block = turn();
            on(machine, 0, || drop(block)); // seen to be local as it is taken again
        }
        let block = turn();
        go(block.address, size);
        on(machine, 0, || drop(block));
        let block = turn();
        on(machine, 0, || drop(block));
    }
}

/// A program of random steps on random nodes, some of them for zeros.
pub fn by_chance(machine: &dyn Machine, pool: &dyn Allocator, (seed, steps, zeros): (u64, usize, bool)) {
    let mut dice = seed;
    let mut roll = |sides: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) as usize % sides
    };
    let mut kept: Vec<Kept> = Vec::new();
    for _ in 0..steps {
        let (node, other, shift) = (roll(2), roll(2), 12 + roll(11));
        let (size, zeroed) = ((1 << shift) + roll(1 << shift), roll(3) == 0 && zeros);
        if roll(3) > 0 {
            kept.push(made(machine, pool, node, size, zeroed));
        } else {
            let mut block = None;
            on(machine, node, || block = Some(Kept::new(pool, size, zeroed)));
            let block = block.unwrap();
            let part = roll(size);
            on(machine, other, || {
                machine.write(block.address + part / page_size() * page_size(), size - part / page_size() * page_size())
            });
            kept.push(block);
        }
        while kept.len() > roll(8) {
            let block = kept.swap_remove(roll(kept.len()));
            on(machine, roll(2), || block.give_back());
        }
    }
}

/// A loop on one node takes fresh pages in its first turns alone: base pages, and huge ones for what comes back filled.
pub fn recycles(machine: &dyn Machine, pool: &dyn Allocator) {
    for node in [0, 1] {
        for size in SIZES {
            let turn = || {
                let (a, b) = (made(machine, pool, node, size, false), made(machine, pool, node, size, false));
                on(machine, node, || drop((a, b)));
            };
            (0..4).for_each(|_| turn());
            let fresh = |stats: firsttouch::Stats| stats.first_touched_small_bytes + stats.first_touched_huge_bytes;
            let before = fresh(pool.stats());
            (0..3).for_each(|_| turn());
            assert_eq!(fresh(pool.stats()), before, "{size} bytes on node {node}");
        }
    }
}
