//! Random programs on a buffer against a shadow: which blocks live, of which scope, with which bytes; every byte of
//! every live block is checked after every step.

mod scratch_common;

use firsttouch::adaptors::{Pool, Tracked};
use firsttouch::allocator::Limit;
use firsttouch::scratch::{Backing, Buffer, Options, Refused, Slot};
use firsttouch::sources::Malloc;
use firsttouch::{Allocator, Request};
use proptest::prelude::*;
use scratch_common::{Dice, Piece, fixed};
use std::collections::HashMap;
use std::sync::Arc;

/// One step of a program. Blocks and scopes are named by a number that is taken modulo how many there are.
#[derive(Clone, Copy, Debug)]
enum Step {
    Open,
    Close(usize),
    CloseLast,
    Allocate { scope: usize, size: usize, align: u32, zeroed: bool },
    Free(usize),
    FreeLast,
    FreeScope(usize),
    Resize(usize, usize),
    Reset,
}

/// What a program knows beside its buffer.
struct Shadow<'a> {
    backing: &'a dyn Backing,
    pieces: Vec<Piece>,
    open: Vec<Slot>,
    /// Scopes that ended while blocks of theirs lived.
    ended: Vec<Slot>,
    seed: u64,
    peak: usize,
    refused: usize,
}

impl<'a> Shadow<'a> {
    fn new(backing: &'a dyn Backing) -> Self {
        Self { backing, pieces: Vec::new(), open: Vec::new(), ended: Vec::new(), seed: 0, peak: 0, refused: 0 }
    }

    fn close(&mut self, at: usize) {
        let slot = self.open.remove(at);
        let lives = || self.pieces.iter().filter(|piece| piece.slot == slot);
        let closed = self.backing.close(slot);
        assert_eq!((closed.survivors, closed.bytes), (lives().count(), lives().map(|piece| piece.usable).sum()));
        assert_eq!(closed.damage, None);
        if closed.survivors > 0 {
            self.ended.push(slot);
        }
        assert_eq!(self.backing.close(slot).survivors, 0, "a second time nothing happens");
    }

    fn allocate(&mut self, scope: usize, request: Request) {
        let slot = if self.open.is_empty() { Slot::OUTSIDE } else { self.open[scope % self.open.len()] };
        match Piece::new(self.backing, slot, request, self.seed) {
            Ok(piece) => self.pieces.push(piece),
            Err(Refused::Failed(error)) => {
                assert_eq!(error.asked, request.size());
                let used = match error.limit {
                    Limit::Full { used, gap, .. } if request.align() == 64 => {
                        assert!(gap < request.size(), "{error}");
                        used
                    }
                    Limit::Full { used, .. } | Limit::Buffer { used, .. } => used,
                    _ => panic!("{error}"),
                };
                assert_eq!(used, self.backing.used());
                self.refused += 1;
            }
            Err(Refused::Fragmented) => self.refused += 1,
        }
    }

    fn step(&mut self, step: Step) {
        self.seed += 1;
        let (living, backing) = (self.pieces.len().max(1), self.backing);
        match step {
            Step::Open => self.open.push(backing.open()),
            Step::Close(at) if !self.open.is_empty() => self.close(at % self.open.len()),
            Step::CloseLast if !self.open.is_empty() => self.close(self.open.len() - 1),
            Step::Allocate { scope, size, align, zeroed } => {
                let request = Request::bytes(size).with_zeroed(zeroed).aligned(1 << align).unwrap();
                self.allocate(scope, request);
            }
            Step::Free(at) if !self.pieces.is_empty() => self.pieces.swap_remove(at % living).give_back(backing),
            Step::FreeLast if !self.pieces.is_empty() => self.pieces.pop().unwrap().give_back(backing),
            Step::FreeScope(at) if !self.pieces.is_empty() => {
                let slot = self.pieces[at % living].slot;
                let (gone, stay) = self.pieces.drain(..).partition(|piece: &Piece| piece.slot == slot);
                self.pieces = stay;
                let gone: Vec<_> = gone;
                gone.into_iter().for_each(|piece| piece.give_back(backing));
            }
            Step::Resize(at, size) if !self.pieces.is_empty() => {
                let seed = self.seed;
                self.pieces[at % living].resize(backing, size, seed);
            }
            Step::Reset => match backing.reset() {
                Ok(()) => {
                    assert!(self.open.is_empty());
                    self.peak = 0;
                }
                Err(depth) => assert_eq!(depth, self.open.len()),
            },
            _ => {}
        }
        self.check();
    }

    fn check(&mut self) {
        let used = self.pieces.iter().map(|piece| piece.usable).sum();
        self.peak = self.peak.max(used);
        assert_eq!((self.backing.used(), self.backing.depth()), (used, self.open.len()));
        assert!(self.backing.peak() >= self.peak && self.backing.capacity() >= used);
        self.pieces.iter().for_each(Piece::check);
    }

    /// Compares the live blocks of every scope.
    fn check_survivors(&mut self) {
        let mut scopes: HashMap<u32, Vec<(usize, usize)>> = HashMap::new();
        self.pieces.iter().for_each(|piece| scopes.entry(piece.slot.0).or_default().push((piece.at(), piece.usable)));
        self.ended.retain(|slot| scopes.contains_key(&slot.0));
        for &slot in self.open.iter().chain(&self.ended).chain([&Slot::OUTSIDE]) {
            let survivors = self.backing.survivors(slot);
            let mut its: Vec<_> = survivors.iter().map(|survivor| (survivor.address, survivor.size)).collect();
            let mut mine = scopes.remove(&slot.0).unwrap_or_default();
            its.sort_unstable();
            mine.sort_unstable();
            assert_eq!(its, mine);
        }
        assert!(scopes.is_empty());
    }

    /// All goes; a growing buffer holds nothing afterwards.
    fn end(mut self, grows: bool) {
        self.check_survivors();
        while !self.open.is_empty() {
            self.close(0);
        }
        let backing = self.backing;
        self.pieces.into_iter().for_each(|piece| piece.give_back(backing));
        backing.reset().unwrap();
        assert_eq!((backing.used(), backing.peak(), backing.depth()), (0, 0, 0));
        if grows {
            assert_eq!(backing.capacity(), 0);
        }
    }
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        3 => 0usize..600,
        3 => (4u32..16, -2isize..3).prop_map(|(shift, d)| (1usize << shift).saturating_add_signed(d)),
        2 => 0usize..40_000,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let align = prop_oneof![8 => Just(6u32), 1 => 7u32..18];
    prop_oneof![
        3 => Just(Step::Open),
        1 => any::<usize>().prop_map(Step::Close),
        2 => Just(Step::CloseLast),
        14 => (any::<usize>(), size(), align, any::<bool>())
            .prop_map(|(scope, size, align, zeroed)| Step::Allocate { scope, size, align, zeroed }),
        7 => any::<usize>().prop_map(Step::Free),
        3 => Just(Step::FreeLast),
        1 => any::<usize>().prop_map(Step::FreeScope),
        3 => (any::<usize>(), size()).prop_map(|(at, size)| Step::Resize(at, size)),
        1 => Just(Step::Reset),
    ]
}

fn run(backing: &dyn Backing, grows: bool, program: &[Step]) {
    let mut shadow = Shadow::new(backing);
    for &step in program {
        shadow.step(step);
        shadow.check_survivors();
    }
    shadow.end(grows);
}

fn options(chunk_size: usize, limit: Option<usize>, debug: bool) -> Options {
    Options { chunk_size, limit, debug, site: None }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn growing(program in prop::collection::vec(step(), 1..300), shift in 10u32..19, debug in any::<bool>()) {
        let upstream = Tracked::new(Arc::new(Malloc), None);
        let buffer = Buffer::growing(upstream.clone(), options(1 << shift, None, debug)).unwrap();
        run(&*buffer, true, &program);
        prop_assert_eq!(upstream.tally().live_bytes, 0);
        drop(buffer);
    }

    #[test]
    fn limited(program in prop::collection::vec(step(), 1..300), limit in 40_000usize..400_000, debug in any::<bool>()) {
        let upstream = Tracked::new(Arc::new(Malloc), None);
        let buffer = Buffer::growing(upstream.clone(), options(32 << 10, Some(limit), debug)).unwrap();
        run(&*buffer, true, &program);
        prop_assert!(upstream.tally().peak_bytes <= limit);
        prop_assert_eq!(upstream.tally().live_bytes, 0);
    }

    #[test]
    fn of_a_fixed_size(program in prop::collection::vec(step(), 1..300), size in 0usize..400_000, debug in any::<bool>()) {
        run(&*fixed(size, false, debug), false, &program);
    }
}

/// Small blocks, so that much happens between two looks at all the bytes.
fn rolled(dice: &mut Dice) -> Step {
    let size = match dice.roll(8) {
        0 => dice.roll(9000),
        1..3 => dice.roll(2000),
        _ => dice.roll(300),
    };
    let align = if dice.roll(12) == 0 { 6 + dice.roll(7) as u32 } else { 6 };
    match dice.roll(64) {
        0..4 => Step::Open,
        4..6 => Step::Close(dice.roll(1 << 20)),
        6..9 => Step::CloseLast,
        9..33 => Step::Allocate { scope: dice.roll(1 << 20), size, align, zeroed: dice.roll(2) == 0 },
        33..49 => Step::Free(dice.roll(1 << 20)),
        49..55 => Step::FreeLast,
        55..57 => Step::FreeScope(dice.roll(1 << 20)),
        57..63 => Step::Resize(dice.roll(1 << 20), size),
        _ => Step::Reset,
    }
}

fn march(backing: &dyn Backing, grows: bool, seed: u64, steps: usize) -> usize {
    let (mut dice, mut shadow) = (Dice(seed), Shadow::new(backing));
    for step in 0..steps {
        shadow.step(rolled(&mut dice));
        if step % 64 == 0 {
            shadow.check_survivors();
        }
        // All starts anew now and then.
        if step % 5000 == 4999 {
            let refused = shadow.refused;
            shadow.end(grows);
            shadow = Shadow { refused, seed: step as u64, ..Shadow::new(backing) };
        }
    }
    let refused = shadow.refused;
    shadow.end(grows);
    refused
}

fn long(steps: usize) {
    let upstream: Arc<dyn Allocator> = Pool::new(firsttouch::adaptors::Options::default());
    for (part, debug) in [false, true].into_iter().enumerate() {
        let growing = Buffer::growing(upstream.clone(), options(32 << 10, None, debug)).unwrap();
        march(&*growing, true, 1 + part as u64, steps / 4);
        let limited = Buffer::growing(upstream.clone(), options(16 << 10, Some(40_000), debug)).unwrap();
        assert!(march(&*limited, true, 3 + part as u64, steps / 8) > steps / 100_000);
        assert!(march(&*fixed(20_000, false, debug), false, 5 + part as u64, steps / 8) > steps / 100_000);
    }
}

#[test]
fn a_long_march() {
    long(40_000);
}

/// Ten million steps: `cargo test --release --test scratch_model -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn ten_million_steps() {
    long(10_000_000);
}
