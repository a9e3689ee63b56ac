//! Random programs against a shadow: what lives in each scope is known beside the arena, and every byte of it is checked
//! after every step.

#![allow(unsafe_code)] // Safety: blocks are only used until their scope or mark is gone back to, as the shadow knows.

mod common;

use common::pattern;
use firsttouch::adaptors::{Limited, Options as PoolOptions, Pool};
use firsttouch::arena::{Arena, ArenaOptions, Scope, Scratch, Upstream};
use firsttouch::sources::Malloc;
use proptest::prelude::*;
use std::mem::MaybeUninit;
use std::slice::from_raw_parts_mut;
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Step {
    Allocate {
        size: usize,
        align: u32,
    },
    Zeros(usize),
    /// Begins a scope, or sets a mark.
    Begin,
    /// Ends the innermost scope, or goes back over so many marks.
    End(usize),
    /// Leaves all scopes.
    Reset,
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 0usize..300,
        3 => (0u32..13, -2isize..3).prop_map(|(shift, more)| (1usize << shift).saturating_add_signed(more)),
        1 => 0usize..20_000,
    ]
}

fn program() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => (size(), prop_oneof![4 => 0u32..7, 1 => 7u32..14]).prop_map(|(size, align)| Step::Allocate { size, align }),
        3 => size().prop_map(Step::Zeros),
        5 => Just(Step::Begin),
        5 => (0usize..3).prop_map(Step::End),
        1 => Just(Step::Reset),
    ];
    prop::collection::vec(step, 1..120)
}

/// What lives: addresses, sizes, and the pattern in each.
#[derive(Default)]
struct Shadow {
    living: Vec<(usize, usize, u64)>,
    seed: u64,
}

impl Shadow {
    fn bytes(&(address, size, _): &(usize, usize, u64)) -> &'static mut [u8] {
        // SAFETY: it lives, as the shadow knows, and nobody else uses it.
        unsafe { from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(address), size) }
    }

    fn add(&mut self, block: *mut u8, size: usize) {
        self.seed += 1;
        self.living.push((block.expose_provenance(), size, self.seed));
        pattern::fill(Self::bytes(self.living.last().unwrap()), self.seed);
        self.check();
    }

    /// Every byte, which blocks that overlap can't have both.
    fn check(&self) {
        self.living.iter().for_each(|block| pattern::check(Self::bytes(block), block.2));
    }
}

/// Runs steps in a scope until it ends; the number of the next step, and whether all scopes end.
fn scoped(s: &mut Scope, program: &[Step], mut at: usize, shadow: &mut Shadow) -> (usize, bool) {
    let before = shadow.living.len();
    let mut all = false;
    while at < program.len() && !all {
        at += 1;
        match program[at - 1] {
            Step::Allocate { size, align } => {
                if let Ok(block) = s.alloc_aligned::<u8>(size, 1 << align) {
                    assert!(block.as_ptr().addr().is_multiple_of(1 << align));
                    shadow.add(block.as_mut_ptr().cast(), size);
                }
            }
            Step::Zeros(size) => {
                if let Ok(block) = s.alloc_slice::<u64>(size / 8) {
                    assert!(block.iter().all(|&word| word == 0));
                    shadow.add(block.as_mut_ptr().cast(), size_of_val(block));
                }
            }
            Step::Begin => (at, all) = s.scope(|s| scoped(s, program, at, shadow)),
            Step::End(_) => break,
            Step::Reset => all = true,
        }
        shadow.check();
    }
    shadow.living.truncate(before);
    (at, all)
}

fn scopes(mut arena: Arena, program: &[Step]) {
    let mut shadow = Shadow::default();
    let mut at = 0;
    while at < program.len() {
        let used = arena.used();
        at = arena.scope(|s| scoped(s, program, at, &mut shadow)).0;
        assert_eq!(arena.used(), used);
        if let Some(Step::Reset) = at.checked_sub(1).map(|last| &program[last]) {
            arena.reset();
        }
    }
}

/// The same with marks, through the trait.
fn marks(arena: Arena, program: &[Step]) {
    let scratch: &dyn Scratch = &arena;
    let mut shadow = Shadow::default();
    let mut open: Vec<(u64, usize, usize)> = Vec::new();
    for step in program {
        match *step {
            Step::Allocate { size, align } => {
                if let Ok(block) = scratch.allocate(size, 1 << align) {
                    assert!(block.as_ptr().addr().is_multiple_of(1 << align));
                    shadow.add(block.as_ptr(), size);
                }
            }
            Step::Zeros(size) => {
                if let Ok(block) = scratch.allocate(size, 1) {
                    shadow.add(block.as_ptr(), size);
                }
            }
            Step::Begin => open.push((scratch.mark(), shadow.living.len(), arena.used())),
            Step::End(_) | Step::Reset if open.is_empty() => {}
            Step::End(over) => {
                let index = open.len() - 1 - over.min(open.len() - 1);
                let (mark, living, used) = open[index];
                open.truncate(index);
                shadow.living.truncate(living);
                // SAFETY: the shadow has forgotten what was allocated since.
                unsafe { scratch.rewind(mark) };
                assert_eq!(arena.used(), used);
            }
            Step::Reset => {
                let (mark, living, _) = open[0];
                open.clear();
                shadow.living.truncate(living);
                // SAFETY: as above.
                unsafe { scratch.rewind(mark) };
            }
        }
        shadow.check();
        assert!(arena.used() <= arena.capacity());
    }
}

fn both(program: &[Step], make: impl Fn() -> Arena<'static>) {
    scopes(make(), program);
    marks(make(), program);
}

fn options() -> impl Strategy<Value = ArenaOptions> {
    (1usize..2000, 1usize..20_000, 0usize..50_000).prop_map(|(first, more, keep)| ArenaOptions {
        first_chunk: first,
        max_chunk: first + more,
        keep,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn with_the_defaults(program in program()) {
        both(&program, Arena::new);
    }

    #[test]
    fn with_any_chunks(program in program(), options in options()) {
        let limited = Limited::new(Arc::new(Malloc), usize::MAX);
        both(&program, || Arena::with(limited.clone(), options).unwrap());
        prop_assert_eq!(limited.used(), 0);
    }

    #[test]
    fn with_little_memory(program in program(), options in options(), budget in 0usize..60_000) {
        let limited = Limited::new(Arc::new(Malloc), budget);
        both(&program, || Arena::with(limited.clone(), options).unwrap());
        prop_assert_eq!(limited.used(), 0);
    }

    #[test]
    fn on_a_pool(program in program(), options in options()) {
        let pool = Pool::new(PoolOptions::default());
        both(&program, || Arena::with(pool.clone(), options).unwrap());
    }

    #[test]
    fn fixed(program in program(), size in 0usize..50_000, skip in 0usize..64) {
        both(&program, || Arena::fixed(Upstream::System, size).unwrap());
        let mut storage = vec![MaybeUninit::uninit(); size + skip];
        scopes(Arena::over(&mut storage[skip..]), &program);
    }
}

/// One arena through many programs: what one leaves behind, the next finds. `cargo test --release -- --ignored`
#[test]
#[ignore = "ten million steps"]
fn ten_million_steps() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut steps = 0;
    while steps < 10_000_000 {
        let options = options().new_tree(&mut runner).unwrap().current();
        let program = program().new_tree(&mut runner).unwrap().current();
        both(&program, || Arena::with(Upstream::System, options).unwrap());
        steps += 2 * program.len();
    }
}
