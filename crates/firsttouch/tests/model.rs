//! Random programs against a shadow: every block's address, size and content is known beside the allocator, and every
//! byte is checked.

mod common;

use common::held::{Held, check_apart};
use common::process::{settles, within};
use firsttouch::adaptors::{Filled, Limited, Machine, Options, Pool};
use firsttouch::os::page_size;
use firsttouch::sources::{Calloc, Guarded, GuardedOptions, Malloc, Pages, Side};
use firsttouch::{Allocator, Request};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// One step of a program. Blocks are named by a number that is taken modulo how many live.
#[derive(Clone, Debug)]
enum Step {
    Allocate { size: usize, align: u32, zeroed: bool },
    Free(usize),
    FreeHalf(usize),
    Resize(usize, usize),
    ResizeInPlace(usize, usize),
    Trim,
    Wait(u64),
}

/// Sizes of all orders of magnitude, often just around a page, a unit or a limit.
fn size() -> impl Strategy<Value = usize> {
    let around =
        |shift: std::ops::Range<u32>| (shift, -3isize..4).prop_map(|(s, d)| (1usize << s).saturating_add_signed(d));
    prop_oneof![
        2 => (6u32..23, 0.0..1.0f64).prop_map(|(shift, part)| (1 << shift) + (part * f64::from(1 << shift)) as usize),
        2 => around(0..22).prop_map(|n| n.max(1)),
        1 => (1usize..40).prop_map(|units| units << 16),
        1 => (1usize..300).prop_map(|pages| pages << 12),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let align = prop_oneof![6 => Just(6u32), 1 => 6u32..24];
    prop_oneof![
        12 => (size(), align, any::<bool>()).prop_map(|(size, align, zeroed)| Step::Allocate { size, align, zeroed }),
        8 => any::<usize>().prop_map(Step::Free),
        1 => any::<usize>().prop_map(Step::FreeHalf),
        3 => (any::<usize>(), size()).prop_map(|(at, size)| Step::Resize(at, size)),
        3 => (any::<usize>(), size()).prop_map(|(at, size)| Step::ResizeInPlace(at, size)),
        1 => Just(Step::Trim),
        1 => (0u64..30).prop_map(Step::Wait),
    ]
}

fn run(allocator: &dyn Allocator, counts: bool, program: &[Step]) {
    let mut blocks: Vec<Held> = Vec::new();
    for (seed, step) in program.iter().enumerate() {
        let living = blocks.len().max(1);
        match *step {
            Step::Allocate { size, align, zeroed } => {
                let request = Request::bytes(size).with_zeroed(zeroed).aligned(1 << align).unwrap();
                let mut block = Held::new(allocator, request).unwrap();
                block.fill(seed as u64);
                blocks.push(block);
            }
            Step::Free(at) if !blocks.is_empty() => blocks.swap_remove(at % living).give_back(),
            Step::FreeHalf(odd) => {
                let mut index = odd % 2;
                blocks.retain(|_| {
                    index += 1;
                    index % 2 == 0
                });
            }
            Step::Resize(at, size) if !blocks.is_empty() => blocks[at % living].resize(size).unwrap(),
            Step::ResizeInPlace(at, size) if !blocks.is_empty() => {
                blocks[at % living].resize_in_place(size);
            }
            Step::Trim => {
                allocator.trim();
            }
            Step::Wait(time) => std::thread::sleep(Duration::from_millis(time)),
            _ => {}
        }
        if counts {
            let asked: usize = blocks.iter().map(|block| block.asked).sum();
            let usable: usize = blocks.iter().map(Held::usable).sum();
            // A block of a pool may begin in its first page.
            let active = usable..=usable + blocks.len() * page_size();
            settles(allocator, |stats| {
                (stats.blocks, stats.in_use) == (blocks.len(), asked) && active.contains(&stats.active)
            });
        }
        settles(allocator, |stats| stats.active + stats.idle + stats.retained <= stats.mapped);
    }
    check_apart(&blocks);
    blocks.into_iter().for_each(Held::give_back);
    allocator.trim();
    settles(allocator, |stats| (stats.active, stats.idle) == (0, 0));
}

fn programs() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..150)
}

fn pool(decay: Option<Duration>, max_idle: Option<usize>, huge: bool) -> Arc<Pool> {
    Pool::new(Options { decay, max_idle, huge })
}

/// A machine with two nodes: the thread moves from one to the other whenever it asks.
fn two_nodes() -> Machine {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    Machine { node_of: [0, 1].into(), current: || TURN.fetch_add(1, Relaxed) % 2 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_pool_with_the_defaults(program in programs()) {
        run(&*Pool::new(Options::default()), true, &program);
    }

    #[test]
    fn a_pool_whose_memory_decays_at_once(program in programs()) {
        run(&*pool(Some(Duration::ZERO), None, true), true, &program);
    }

    #[test]
    fn a_pool_that_may_keep_little(program in programs()) {
        run(&*pool(Some(Duration::from_millis(200)), Some(1 << 20), false), true, &program);
    }

    #[test]
    fn a_pool_that_keeps_everything(program in programs()) {
        run(&*pool(None, Some(usize::MAX), false), true, &program);
    }

    #[test]
    fn a_pool_over_a_budget(program in programs()) {
        let limited = Limited::new(Arc::new(Malloc), 1 << 40);
        let quick = Options { decay: Some(Duration::ZERO), ..Options::default() };
        run(&*Pool::over(limited.clone(), quick), true, &program);
        within("the purger gave back what it took", || limited.used() == 0);
    }

    #[test]
    fn a_pool_on_two_nodes(program in programs(), quick in any::<bool>()) {
        let decay = if quick { Some(Duration::ZERO) } else { None };
        run(&*Pool::on(Options { decay, ..Options::default() }, two_nodes()), true, &program);
    }

    #[test]
    fn filled_guarded(program in programs(), before in any::<bool>(), keep in 0usize..4 << 20) {
        let side = if before { Side::Before } else { Side::After };
        let guarded = Guarded::new(GuardedOptions { side, keep });
        run(&*Filled::new(guarded.clone(), Some(0xFF), Some(0)), false, &program);
        prop_assert_eq!(guarded.check(), []);
    }

    #[test]
    fn pages(program in programs(), huge in any::<bool>()) {
        run(&*Pages::new(huge), false, &program);
    }

    #[test]
    fn aligned(program in programs(), shift in 6u32..22) {
        run(&*Calloc::aligned(1 << shift).unwrap(), false, &program);
    }
}

/// One pool through many programs: what one leaves behind, the next finds.
#[test]
fn one_pool_for_all() {
    let pool = pool(Some(Duration::from_millis(100)), None, true);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..24 {
        let program = programs().new_tree(&mut runner).unwrap().current();
        run(&*pool, true, &program);
    }
}
