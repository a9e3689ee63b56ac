//! Random programs against a shadow: every block's address, size and content is known beside the allocator, and every
//! byte is checked. What is given has the size and the alignment asked for and is writable as a whole (law 1), contents
//! come along, and nobody else writes.

use super::Make;
use super::common::held::{Held, check_apart};
use super::common::process::settles;
use firsttouch::adaptors::Pool;
use firsttouch::allocator::{downcast, find};
use firsttouch::os::page_size;
use firsttouch::sources::Guarded;
use firsttouch::{Allocator, Request, Stats};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::sync::Arc;
use std::time::Duration;

/// One step of a program. Blocks are named by a number that is taken modulo how many live.
#[derive(Clone, Debug)]
enum Step {
    Allocate { size: usize, align: u32, zeroed: bool },
    Free(usize),
    FreeHalf(usize),
    Resize(usize, usize),
    Trim,
    Wait(u64),
}

/// Sizes of all orders of magnitude, often just around a page, a unit or a limit.
fn size() -> impl Strategy<Value = usize> {
    let around =
        |shift: std::ops::Range<u32>| (shift, -3isize..4).prop_map(|(s, d)| (1usize << s).saturating_add_signed(d));
    prop_oneof![
        2 => (6u32..23, 0.0..1.0f64).prop_map(|(shift, part)| (1 << shift) + (part * f64::from(1 << shift)) as usize),
        2 => around(0..22),
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
        6 => (any::<usize>(), size()).prop_map(|(at, size)| Step::Resize(at, size)),
        1 => Just(Step::Trim),
        1 => (0u64..30).prop_map(Step::Wait),
    ]
}

fn sound(stats: &Stats) -> bool {
    // Not every source tells fresh memory from recycled.
    let told = stats.recycled_bytes + stats.first_touched_small_bytes + stats.first_touched_huge_bytes;
    stats.in_use <= stats.active
        && stats.active + stats.idle + stats.retained <= stats.mapped
        && stats.recycled <= stats.allocations
        && (stats.peak_held == 0 || stats.peak_held >= stats.peak_active.max(stats.active + stats.idle))
        && (told == 0 || told >= stats.active as u64)
}

fn run(allocator: &Arc<dyn Allocator>, counts: bool, program: &[Step]) {
    let is_pool = downcast::<Pool>(allocator).is_some();
    let mut blocks: Vec<Held> = Vec::new();
    for (seed, step) in program.iter().enumerate() {
        let living = blocks.len().max(1);
        match *step {
            Step::Allocate { size, align, zeroed } => {
                let request = Request::bytes(size).with_zeroed(zeroed).aligned(1 << align).unwrap();
                let mut block = Held::new(&**allocator, request).unwrap();
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
            settles(&**allocator, |stats| {
                (stats.blocks, stats.in_use) == (blocks.len(), asked) && (!is_pool || active.contains(&stats.active))
            });
        }
        settles(&**allocator, |stats| !counts || sound(stats));
    }
    check_apart(&blocks);
    blocks.into_iter().for_each(Held::give_back);
    allocator.trim();
    settles(&**allocator, |stats| (stats.active, stats.idle, stats.in_use, stats.blocks) == (0, 0, 0, 0));
    assert_eq!(allocator.trim(), 0, "there is nothing left to give back");
    assert!(find::<Guarded>(allocator).is_none_or(|guarded| guarded.check().is_empty()));
}

/// Each program on an allocator of its own, and then on one that has served all before: what one leaves behind, the next
/// finds.
pub fn random(make: Make) {
    let probe = make();
    let counts = {
        let _block = Held::new(&*probe, Request::bytes(1 << 20)).unwrap();
        probe.stats().blocks > 0
    };
    let config = Config { cases: 8, failure_persistence: None, ..Config::default() };
    let programs = prop::collection::vec(step(), 1..150);
    let body = |program: Vec<Step>| {
        run(&make(), counts, &program);
        run(&probe, counts, &program);
        Ok(())
    };
    TestRunner::new(config).run(&programs, body).unwrap();
}

/// Blocks of several alignments grow in turn, move, and shrink: each keeps its content and its alignment.
pub fn growing_in_turn(make: Make) {
    let allocator = make();
    let aligns: [usize; 4] = [64, 512, 4096, 64];
    let request = |size, align| Request::bytes(size).aligned(align).unwrap();
    let mut blocks: Vec<_> =
        aligns.iter().map(|&align| Held::new(&*allocator, request(1000, align)).unwrap()).collect();
    blocks.iter_mut().zip(0..).for_each(|(block, seed)| block.fill(seed));
    for size in [70_000, 200_000, 1 << 20, 5 << 20, (5 << 20) + 1, 130_000, 900] {
        for (block, &align) in blocks.iter_mut().zip(&aligns) {
            block.reallocate(request(size, align)).unwrap();
        }
        check_apart(&blocks);
    }
    // An alignment that is no longer asked need not stay.
    blocks[2].resize(3 << 20).unwrap();
    blocks.into_iter().for_each(Held::give_back);
    settles(&*allocator, |stats| (stats.in_use, stats.blocks) == (0, 0));
}
