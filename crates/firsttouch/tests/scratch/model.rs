//! Random programs on a buffer against a shadow: which blocks live, since when, with which bytes; every byte of every live
//! block is checked after every step.

use crate::pieces::{Dice, Piece, fixed};
use firsttouch::adaptors::{Limited, Options, Pool};
use firsttouch::allocator::Limit;
use firsttouch::scratch::Buffer;
use firsttouch::{Allocator, Request};
use std::sync::Arc;

/// One step of a program. Blocks are named by a number that is taken modulo how many there are.
enum Step {
    Settle,
    Allocate { size: usize, align: u32, zeroed: bool },
    Free(usize),
    FreeLast,
    FreeHalf(usize),
    Resize(usize, usize),
    Reset,
}

/// What a program knows beside its buffer.
struct Shadow<'a> {
    buffer: &'a Buffer,
    pieces: Vec<Piece>,
    seed: u64,
    peak: usize,
    refused: usize,
}

impl<'a> Shadow<'a> {
    fn new(buffer: &'a Buffer) -> Self {
        Self { buffer, pieces: Vec::new(), seed: 0, peak: 0, refused: 0 }
    }

    fn allocate(&mut self, request: Request) {
        match Piece::new(self.buffer, request, self.seed) {
            Ok(piece) => self.pieces.push(piece),
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

    fn step(&mut self, step: Step) {
        self.seed += 1;
        let (living, buffer) = (self.pieces.len().max(1), self.buffer);
        match step {
            Step::Settle => buffer.settle(),
            Step::Allocate { size, align, zeroed } => {
                self.allocate(Request::bytes(size).with_zeroed(zeroed).aligned(1 << align).unwrap());
            }
            Step::Free(at) if !self.pieces.is_empty() => self.pieces.swap_remove(at % living).give_back(buffer),
            Step::FreeLast if !self.pieces.is_empty() => self.pieces.pop().unwrap().give_back(buffer),
            Step::FreeHalf(at) => {
                let mut at = at;
                let (gone, stay): (Vec<_>, Vec<_>) = self.pieces.drain(..).partition(|_| {
                    at = at.rotate_right(1);
                    at % 2 == 0
                });
                self.pieces = stay;
                gone.into_iter().for_each(|piece| piece.give_back(buffer));
            }
            Step::Resize(at, size) if !self.pieces.is_empty() => {
                let seed = self.seed;
                self.pieces[at % living].resize(buffer, size, seed);
            }
            Step::Reset => {
                buffer.reset();
                self.peak = 0;
            }
            _ => {}
        }
        self.check();
    }

    fn check(&mut self) {
        let own = self.pieces.iter().filter(|piece| piece.serial.is_some());
        let used = own.map(|piece| piece.usable).sum();
        self.peak = self.peak.max(used);
        assert_eq!(self.buffer.used(), used);
        assert!(self.buffer.peak() >= self.peak && self.buffer.capacity() >= used);
        self.pieces.iter().for_each(Piece::check);
    }

    /// Compares what the buffer knows of its blocks.
    fn check_blocks(&self) {
        for piece in &self.pieces {
            let known = self.buffer.block(piece.address);
            assert_eq!(known, piece.serial.map(|serial| (piece.usable, serial)));
        }
    }

    /// All goes; a growing buffer holds nothing afterwards.
    fn end(self) {
        self.check_blocks();
        let buffer = self.buffer;
        self.pieces.into_iter().for_each(|piece| piece.give_back(buffer));
        buffer.settle();
        buffer.reset();
        assert_eq!((buffer.used(), buffer.peak()), (0, 0));
        assert!(buffer.upstream().is_none() || buffer.capacity() == 0);
    }
}

/// Mostly small blocks, so that much happens between two looks at all the bytes.
fn rolled(dice: &mut Dice) -> Step {
    let size = match dice.roll(8) {
        0 => [dice.roll(9000), dice.roll(9000), (1 << dice.roll(16)) + dice.roll(3), dice.roll(40_000)][dice.roll(4)],
        1..3 => dice.roll(2000),
        _ => dice.roll(300),
    };
    let align = if dice.roll(12) == 0 { 6 + dice.roll(11) as u32 } else { 6 };
    match dice.roll(64) {
        0..9 => Step::Settle,
        9..33 => Step::Allocate { size, align, zeroed: dice.roll(2) == 0 },
        33..49 => Step::Free(dice.roll(1 << 20)),
        49..55 => Step::FreeLast,
        55..57 => Step::FreeHalf(dice.roll(1 << 20)),
        57..63 => Step::Resize(dice.roll(1 << 20), size),
        _ => Step::Reset,
    }
}

fn march(buffer: &Buffer, seed: u64, steps: usize) -> usize {
    let (mut dice, mut shadow) = (Dice(seed), Shadow::new(buffer));
    for step in 0..steps {
        shadow.step(rolled(&mut dice));
        if step % 64 == 0 {
            shadow.check_blocks();
        }
        // All starts anew now and then.
        if step % 5000 == 4999 {
            let refused = shadow.refused;
            shadow.end();
            shadow = Shadow { refused, seed: step as u64, ..Shadow::new(buffer) };
        }
    }
    let refused = shadow.refused;
    shadow.end();
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
