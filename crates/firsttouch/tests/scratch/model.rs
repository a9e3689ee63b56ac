//! Random programs on a buffer against a shadow: which blocks live, since when, with which bytes; every byte of every live
//! block is checked after every step.

use crate::common::held::Held;
use crate::common::pattern::Dice;
use crate::fixed;
use firsttouch::adaptors::{Limited, Options, Pool};
use firsttouch::allocator::Limit;
use firsttouch::scratch::Buffer;
use firsttouch::{Allocator, Request};
use std::ptr::NonNull;
use std::sync::Arc;

/// What a program knows beside its buffer.
struct Shadow<'a> {
    buffer: &'a Buffer,
    /// Each with the number of its request.
    blocks: Vec<(Held<'a>, u64)>,
    seed: u64,
    peak: usize,
    refused: usize,
}

impl<'a> Shadow<'a> {
    fn new(buffer: &'a Buffer) -> Self {
        Self { buffer, blocks: Vec::new(), seed: 0, peak: 0, refused: 0 }
    }

    fn allocate(&mut self, request: Request) {
        let serial = self.buffer.serial();
        match Held::new(self.buffer, request) {
            Ok(mut block) => {
                block.fill(self.seed);
                self.blocks.push((block, serial));
            }
            Err(error) => {
                assert_eq!(error.asked, request.size());
                match error.limit {
                    Limit::Full { used, .. } => assert_eq!(used, self.buffer.used()),
                    Limit::Budget { used, .. } => assert!(used >= self.buffer.used()),
                    _ => panic!("{error}"),
                }
                self.refused += 1;
            }
        }
    }

    /// Mostly small blocks, so that much happens between two looks at all the bytes.
    fn step(&mut self, dice: &mut Dice) {
        self.seed += 1;
        let (living, buffer) = (self.blocks.len(), self.buffer);
        let size = match dice.roll(8) {
            0 => {
                [dice.roll(9000), dice.roll(9000), (1 << dice.roll(16)) + dice.roll(3), dice.roll(40_000)][dice.roll(4)]
            }
            1..3 => dice.roll(2000),
            _ => dice.roll(300),
        };
        match dice.roll(64) {
            0..9 => buffer.settle(),
            9..33 => {
                let align = 1 << if dice.roll(12) == 0 { 6 + dice.roll(11) } else { 6 };
                self.allocate(Request::bytes(size).with_zeroed(dice.roll(2) == 0).aligned(align).unwrap());
            }
            33 => {
                buffer.reset();
                self.peak = 0;
            }
            _ if living == 0 => {}
            34..50 => self.blocks.swap_remove(dice.roll(living)).0.give_back(),
            50..56 => self.blocks.pop().unwrap().0.give_back(),
            56..58 => self.blocks.retain(|_| dice.roll(2) == 0),
            _ => {
                let (block, serial) = &mut self.blocks[dice.roll(living)];
                let (before, next) = (block.address(), buffer.serial());
                if block.resize(size).is_ok() && block.address() != before {
                    *serial = next;
                }
            }
        }
        let own = self.blocks.iter().filter(|(block, _)| block.is_known() == Some(true));
        let used = own.map(|(block, _)| block.usable()).sum();
        self.peak = self.peak.max(used);
        assert_eq!(buffer.used(), used);
        assert!(buffer.peak() >= self.peak && buffer.capacity() >= used);
        self.blocks.iter().for_each(|(block, _)| block.check());
    }

    /// What the buffer knows of its blocks; then all goes, and a growing buffer holds nothing.
    fn end(self) {
        let buffer = self.buffer;
        for (block, serial) in self.blocks {
            let known = buffer.block(NonNull::new(block.address() as *mut u8).unwrap());
            assert!(known.is_none_or(|known| known == (block.usable(), serial)));
            block.give_back();
        }
        buffer.reset();
        assert_eq!((buffer.used(), buffer.peak()), (0, 0));
        assert!(buffer.upstream().is_none() || buffer.capacity() == 0);
    }
}

/// How many requests were refused. All starts anew now and then.
fn march(buffer: &Buffer, seed: u64, steps: usize) -> usize {
    let (mut dice, mut refused) = (Dice(seed), 0);
    for _ in 0..steps.div_ceil(1000) {
        let mut shadow = Shadow::new(buffer);
        (0..1000).for_each(|_| shadow.step(&mut dice));
        refused += shadow.refused;
        shadow.end();
    }
    refused
}

fn long(steps: usize) {
    let upstream: Arc<dyn Allocator> = Pool::new(Options::default());
    march(&Buffer::growing(upstream.clone(), 32 << 10), 1, steps / 2);
    let limited = Buffer::growing(Limited::new(upstream, 40_000), 16 << 10);
    assert!(march(&limited, 3, steps / 4) > steps / 100_000);
    assert!(march(&fixed(20_000, false), 5, steps / 4) > steps / 100_000);
}

#[test]
fn a_long_march() {
    long(40_000);
}

/// Ten million steps: a part of `make trust`.
#[test]
#[ignore = "takes minutes"]
fn ten_million_steps() {
    long(10_000_000);
}
